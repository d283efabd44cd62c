import { clock } from '@baton/telemetry';
import { ProtocolError, tokenPrincipal } from '@baton/a2a';
import type { Actor, ApiToken, TokenRights } from '@baton/database';
import { type IssuedToken, TokenService } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import { type OpenWork, PrincipalActivity, type StoppedWork } from './principal-activity.js';

/** A token that was revoked, and the work that was stopped with it. */
export interface RevokedToken {
  token: ApiToken;
  /** What runs without it. */
  running: OpenWork;
  /** Unset: nothing was to be stopped. */
  stopped?: StoppedWork;
}

/** Changes of a tenant's tokens, for its administrators and for operators, who have found the token. */
@Injectable()
export class TenantTokens {
  constructor(
    private readonly tokens: TokenService,
    private readonly work: PrincipalActivity,
  ) {}

  /** What the token has that runs without its calls. */
  async running({ tenantId, id }: ApiToken): Promise<OpenWork> {
    return this.work.open(tenantId, tokenPrincipal(id).key);
  }

  /** Changes what the token may do. @throws ProtocolError `conflict` if it was revoked */
  async change({ tenantId, id }: ApiToken, rights: Partial<TokenRights>, by: Actor): Promise<ApiToken> {
    return assertGood(await this.tokens.change(tenantId, id, rights, by));
  }

  /**
   * Gives the token a new secret. The secret before it stays valid for a while.
   * @param expiresAt unset = as before
   * @throws ProtocolError `invalid-params` if it has expired and gets no new end, `conflict` if it was revoked
   */
  async rotate(
    { tenantId, id, expiresAt: end }: ApiToken,
    rotation: { overlapMs: number; expiresAt?: Date | null },
    by: Actor,
  ): Promise<IssuedToken> {
    if (rotation.expiresAt === undefined && end && end <= clock.date()) {
      throw ProtocolError.invalidParams('expires_at', 'is required: the token has expired');
    }
    return assertGood(await this.tokens.rotate(tenantId, id, rotation, by));
  }

  /** Revokes the token. Its open streams end. @param stop also cancel its tasks and pause its schedules */
  async revoke({ tenantId, id }: ApiToken, stop: boolean, by: Actor): Promise<RevokedToken> {
    const token = await this.tokens.revoke(tenantId, id, by);
    if (!token) throw new ProtocolError('not-found', `Token not found: ${id}`);
    const stopped = stop ? await this.work.stop(tenantId, tokenPrincipal(id).key, by) : undefined;
    return { token, running: await this.running(token), ...(stopped && { stopped }) };
  }
}

function assertGood<T>(changed: T | undefined): T {
  if (changed) return changed;
  throw new ProtocolError('conflict', 'the token was revoked: create another');
}
