import { loadEnvironment } from '@baton/config';
import type { ApiToken, FoundToken, TokenRights, TokenStore } from '@baton/database';
import type { Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import type { ControlInMemory } from './control.fixture.js';
import { TokenService, type Verification } from './token.service.js';
import type { RefusedToken } from './token-state.js';

type Row = ApiToken & { hash: string; previousHash?: string };

/** Tokens in memory, with the interface of the store as far as TokenService uses it. */
export class TokensInMemory {
  readonly rows: Row[] = [];
  readonly uses: Parameters<TokenStore['noteUses']>[0][number][] = [];
  reads = 0;

  async create(input: Parameters<TokenStore['create']>[0]): Promise<ApiToken> {
    const never = { revokedAt: null, lastUsedAt: null, previousPrefix: null, previousUntil: null };
    const token = { ...input, ...never, id: `t${this.rows.length + 1}`, createdAt: new Date() };
    this.rows.push(token);
    return token;
  }

  async byHashes(hashes: readonly string[]): Promise<Map<string, FoundToken>> {
    this.reads += 1;
    const found = new Map<string, FoundToken>();
    for (const row of this.rows) {
      if (hashes.includes(row.hash)) found.set(row.hash, { ...row });
      const { previousHash: earlier, previousUntil } = row;
      if (earlier !== undefined && hashes.includes(earlier) && previousUntil) {
        found.set(earlier, { ...row, secretUntil: previousUntil });
      }
    }
    return found;
  }

  async change(tenantId: string, id: string, rights: Partial<TokenRights>): Promise<ApiToken | undefined> {
    const row = this.find(tenantId, id);
    return row && { ...Object.assign(row, rights) };
  }

  async rotate(
    tenantId: string,
    id: string,
    secret: { hash: string; prefix: string },
    { overlapMs, expiresAt }: { overlapMs: number; expiresAt?: Date | null },
  ): Promise<ApiToken | undefined> {
    const row = this.find(tenantId, id);
    if (!row) return undefined;
    const previous = { previousHash: row.hash, previousUntil: new Date(Date.now() + overlapMs) };
    return { ...Object.assign(row, previous, secret, expiresAt !== undefined && { expiresAt }) };
  }

  async revoke(tenantId: string, id: string): Promise<ApiToken | undefined> {
    const row = this.find(tenantId, id);
    if (row) row.revokedAt = new Date();
    return row;
  }

  async noteUses(uses: typeof this.uses): Promise<void> {
    this.uses.push(...uses);
  }

  private find(tenantId: string, id: string): Row | undefined {
    return this.rows.find((token) => token.tenantId === tenantId && token.id === id);
  }
}

/** A TokenService over things in memory. */
export function tokenService(
  tokens: TokensInMemory,
  control: ControlInMemory,
  cacheMs = 60_000,
): TokenService {
  const environment = loadEnvironment({ DATABASE_URL: 'postgres://none', TOKEN_CACHE_MS: String(cacheMs) });
  return new TokenService(
    tokens as unknown as TokenStore,
    control as unknown as Messaging,
    Logger.silent(),
    environment,
  );
}

/** What `verify` says of a token that was good once. */
export const refusedAs = (
  reason: RefusedToken,
  { id, tenantId }: Pick<ApiToken, 'id' | 'tenantId'>,
): Verification => ({
  ok: false,
  reason,
  holder: { tenantId, principal: { kind: 'token', key: `token:${id}` } },
});
