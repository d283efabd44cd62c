import type { Environment } from '@baton/config';
import { CatalogClient, OperatorTokenStore } from '@baton/database';
import { OperatorTokens } from '@baton/identity';
import { hostname, userInfo } from 'node:os';

/** How long a token of a killed command can stay. Its secret has died with the command. */
const VALID_MS = 3_600_000;

/**
 * Do `work` with the token of an operator that is made for it and removed after it. A user of the database is an
 * operator. The audit log has the token with the user and the machine, and the changes with the token.
 */
export async function withCommandToken<T>(
  { databaseDirectUrl, databaseSystemKey: systemKey }: Environment,
  work: (secret: string) => Promise<T>,
): Promise<T> {
  const catalog = new CatalogClient(databaseDirectUrl, { systemKey });
  try {
    const store = new OperatorTokenStore(catalog);
    const name = `command line, ${userName()}@${hostname()}`;
    await store.removeExpired(name);
    const { secret, token } = await new OperatorTokens(store).issue(name, new Date(Date.now() + VALID_MS));
    try {
      return await work(secret);
    } finally {
      await store.remove(token.id).catch(() => undefined);
    }
  } finally {
    await catalog.close();
  }
}

/** In a container, the user may have no name. */
function userName(): string {
  try {
    return userInfo().username;
  } catch {
    return `uid ${process.getuid?.() ?? '-'}`;
  }
}
