import { clock } from '@baton/telemetry';
import {
  type Actor,
  OPERATOR_ACTOR,
  type OperatorRole,
  type OperatorToken,
  OperatorTokenStore,
} from '@baton/database';
import { Injectable } from '@nestjs/common';
import { createHash, randomBytes } from 'node:crypto';

// No quotes: names of metrics in quotes begin like this.
const PREFIX = `baton_operator_`;
const FORM = /^baton_operator_[A-Za-z0-9_-]{43}$/;
/** Enough to distinguish tokens, too little to guess one. */
const SHOWN = PREFIX.length + 6;

/**
 * Tokens of operators: for everything that the management port offers, over all tenants. They are looked up at each
 * request, so a revocation counts at once: operators ask seldom.
 */
@Injectable()
export class OperatorTokens {
  constructor(private readonly store: OperatorTokenStore) {}

  /**
   * A new token. Its secret is returned only here: the database stores its SHA-256. Only the command line issues tokens, on the
   * database: a stolen token makes no others.
   */
  async issue(
    name: string,
    expiresAt: Date | null,
    role: OperatorRole = 'full',
  ): Promise<{ secret: string; token: OperatorToken }> {
    const secret = PREFIX + randomBytes(32).toString('base64url');
    const input = { name, hash: hashOf(secret), prefix: secret.slice(0, SHOWN), role, expiresAt };
    return { secret, token: await this.store.create(input, OPERATOR_ACTOR) };
  }

  /** All tokens, also revoked and expired ones, the newest first. */
  async list(): Promise<OperatorToken[]> {
    return this.store.list();
  }

  /** Revokes a token by id or prefix. @returns undefined if there is none */
  async revoke(idOrPrefix: string, by: Actor): Promise<OperatorToken | undefined> {
    return this.store.revoke(idOrPrefix, by);
  }

  /** The token of a secret, or undefined if it is unknown, revoked or expired. */
  async verify(secret: string): Promise<OperatorToken | undefined> {
    if (!FORM.test(secret)) return undefined;
    const token = await this.store.byHash(hashOf(secret));
    if (!token || token.revokedAt) return undefined;
    return token.expiresAt && token.expiresAt.getTime() <= clock.now() ? undefined : token;
  }
}

const hashOf = (secret: string): string => createHash('sha256').update(secret).digest('hex');
