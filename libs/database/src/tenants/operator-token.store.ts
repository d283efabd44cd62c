import { clock } from '@baton/telemetry';
import { isUuid } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { type Actor, PLATFORM } from '../audit/audit-records.js';
import { CatalogClient } from '../connection/catalog-client.js';
import type { OperatorToken as OperatorTokenRow } from '../generated/client.js';

/**
 * What a token of an operator may do: `read` everything, `support` tenants without seeing contents (prompts, messages, results), or
 * all (`full`).
 */
export const OPERATOR_ROLES = ['read', 'support', 'full'] as const;
export type OperatorRole = (typeof OPERATOR_ROLES)[number];

/** A token of an operator. The secret itself is never stored. */
export interface OperatorToken {
  id: string;
  name: string;
  /** First characters of the secret, kept so that a person can recognise it. */
  prefix: string;
  role: OperatorRole;
  expiresAt: Date | null;
  revokedAt: Date | null;
  createdAt: Date;
}

/** Tokens of operators. `hash` is the hex SHA-256 of the secret. They belong to no tenant: their audit records are the platform's. */
@Injectable()
export class OperatorTokenStore {
  constructor(private readonly catalog: CatalogClient) {}

  async create(
    input: { name: string; hash: string; prefix: string; role: OperatorRole; expiresAt: Date | null },
    by: Actor,
  ): Promise<OperatorToken> {
    return this.catalog.changeAcross(PLATFORM, async (prisma, record) => {
      const token = tokenOf(await prisma.operatorToken.create({ data: input }));
      const { id, name, role, expiresAt } = token;
      const target = { kind: 'token', name: id } as const;
      await record({ action: 'operator-token.create', target, by, detail: { name, role, expiresAt } });
      return token;
    });
  }

  /** Also finds revoked and expired tokens. */
  async byHash(hash: string): Promise<OperatorToken | undefined> {
    const row = await this.catalog.run((prisma) => prisma.operatorToken.findUnique({ where: { hash } }));
    return row ? tokenOf(row) : undefined;
  }

  /** Newest first. */
  async list(): Promise<OperatorToken[]> {
    const orderBy = { createdAt: 'desc' } as const;
    return (await this.catalog.run((prisma) => prisma.operatorToken.findMany({ orderBy }))).map(tokenOf);
  }

  /** Revokes a token by id or prefix; the time of an earlier revocation stays. Undefined: there is none. */
  async revoke(idOrPrefix: string, by: Actor): Promise<OperatorToken | undefined> {
    const where = isUuid(idOrPrefix) ? { id: idOrPrefix } : { prefix: idOrPrefix };
    return this.catalog.changeAcross(PLATFORM, async (prisma, record) => {
      const data = { revokedAt: clock.date() };
      const { count } = await prisma.operatorToken.updateMany({ where: { ...where, revokedAt: null }, data });
      const row = await prisma.operatorToken.findFirst({ where });
      if (!row) return undefined;
      const target = { kind: 'token', name: row.id } as const;
      if (count > 0)
        await record({ action: 'operator-token.revoke', target, by, detail: { name: row.name } });
      return tokenOf(row);
    });
  }

  /** Deletes a token that was made for one command. Its audit record stays. */
  async remove(id: string): Promise<void> {
    await this.catalog.run((prisma) => prisma.operatorToken.deleteMany({ where: { id } }));
  }

  /** Deletes the expired tokens of that name: commands that were killed have left theirs. */
  async removeExpired(name: string): Promise<void> {
    const where = { name, expiresAt: { lt: clock.date() } };
    await this.catalog.run((prisma) => prisma.operatorToken.deleteMany({ where }));
  }
}

/** The hash stays in the database. */
const tokenOf = ({ hash: _, role, ...token }: OperatorTokenRow): OperatorToken => ({
  ...token,
  role: OPERATOR_ROLES.find((known) => known === role) ?? 'support',
});
