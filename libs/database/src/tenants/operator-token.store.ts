import { clock } from '@baton/telemetry';
import { isUuid } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import { CatalogClient } from '../connection/catalog-client.js';
import type { OperatorToken as OperatorTokenRow } from '../generated/client.js';

/** A token of an operator. The secret itself is never stored. */
export interface OperatorToken {
  id: string;
  name: string;
  /** First characters of the secret, kept so that a person can recognise it. */
  prefix: string;
  expiresAt: Date | null;
  revokedAt: Date | null;
  createdAt: Date;
}

/** Tokens of operators. `hash` is the hex SHA-256 of the secret. */
@Injectable()
export class OperatorTokenStore {
  constructor(private readonly catalog: CatalogClient) {}

  async create(input: {
    name: string;
    hash: string;
    prefix: string;
    expiresAt: Date | null;
  }): Promise<OperatorToken> {
    return tokenOf(await this.catalog.run((prisma) => prisma.operatorToken.create({ data: input })));
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
  async revoke(idOrPrefix: string): Promise<OperatorToken | undefined> {
    const where = isUuid(idOrPrefix) ? { id: idOrPrefix } : { prefix: idOrPrefix };
    await this.catalog.run((prisma) =>
      prisma.operatorToken.updateMany({
        where: { ...where, revokedAt: null },
        data: { revokedAt: clock.date() },
      }),
    );
    const row = await this.catalog.run((prisma) => prisma.operatorToken.findFirst({ where }));
    return row ? tokenOf(row) : undefined;
  }
}

/** The hash stays in the database. */
const tokenOf = ({ hash: _, ...token }: OperatorTokenRow): OperatorToken => token;
