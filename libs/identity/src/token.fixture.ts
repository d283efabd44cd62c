import { loadEnvironment } from '@baton/config';
import type { ApiToken, TokenStore } from '@baton/database';
import type { ControlMessage, Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { TokenService } from './token.service.js';

/** Tokens in memory, with the interface of the store as far as TokenService uses it. */
export class TokensInMemory {
  readonly rows: (ApiToken & { hash: string })[] = [];
  reads = 0;

  create(input: Omit<ApiToken, 'id' | 'revokedAt' | 'createdAt'> & { hash: string }): Promise<ApiToken> {
    const token = { ...input, id: `t${this.rows.length + 1}`, revokedAt: null, createdAt: new Date() };
    this.rows.push(token);
    return Promise.resolve(token);
  }

  byHash(hash: string): Promise<ApiToken | undefined> {
    this.reads += 1;
    const row = this.rows.find((token) => token.hash === hash);
    return Promise.resolve(row && { ...row });
  }

  byHashes(hashes: readonly string[]): Promise<Map<string, ApiToken>> {
    const rows = this.rows.filter(({ hash }) => hashes.includes(hash));
    return Promise.resolve(new Map(rows.map((row) => [row.hash, { ...row }])));
  }

  revoke(tenantId: string, id: string): Promise<ApiToken | undefined> {
    const row = this.rows.find((token) => token.tenantId === tenantId && token.id === id);
    if (row) row.revokedAt = new Date();
    return Promise.resolve(row);
  }
}

/** Control messages within one process, at once. */
export class ControlInMemory {
  readonly listeners = new Set<(message: ControlMessage) => void>();
  isAway = false;

  publishControl(message: ControlMessage): Promise<void> {
    if (this.isAway) return Promise.reject(new Error('Redis does not answer'));
    for (const listener of this.listeners) listener(message);
    return Promise.resolve();
  }

  subscribeControl(listener: (message: ControlMessage) => void): Promise<() => void> {
    this.listeners.add(listener);
    return Promise.resolve(() => void this.listeners.delete(listener));
  }

  onReconnect(): () => void {
    return () => undefined;
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
