import { CatalogClient, type OperatorRole, type OperatorToken, OperatorTokenStore } from '@baton/database';
import { OperatorTokens } from '@baton/identity';
import type { Cli } from '../cli.js';
import { findEnvironment } from '../platform.js';

/** Makes the token of an operator in the database: no route of the API does, so that a stolen token makes no others. */
export async function createOperatorToken(
  { source }: Cli,
  name: string,
  expiresAt: Date | null,
  role: OperatorRole,
): Promise<{ secret: string; token: OperatorToken }> {
  const { databaseDirectUrl, databaseSystemKey: systemKey } = findEnvironment(source);
  const catalog = new CatalogClient(databaseDirectUrl, { systemKey });
  try {
    return await new OperatorTokens(new OperatorTokenStore(catalog)).issue(name, expiresAt, role);
  } finally {
    await catalog.close();
  }
}
