import { masterKeyIdsOf } from '@baton/config';
import { AuditStore, CatalogClient, Database, OPERATOR_ACTOR, PLATFORM, SecretStore } from '@baton/database';
import { Secrets } from '@baton/identity';
import type { Cli, JsonOption } from './cli.js';
import { OperatorError } from './operator-error.js';
import { printValue } from './output.js';
import { findEnvironment } from './platform.js';

/**
 * Encrypts the secrets of all tenants with the newest master key, in the database: the API does not start while the keys of its
 * environment are not those of the database.
 * @param options.keyLost take the newest key in place of that of the database
 */
export async function rotateSecrets(
  { source, terminal }: Cli,
  { json, keyLost }: JsonOption & { keyLost?: boolean },
): Promise<void> {
  const environment = findEnvironment(source);
  const { databaseDirectUrl: url, databaseSystemKey: systemKey, allowRlsBypass } = environment;
  const keys = masterKeyIdsOf(environment);
  const catalog = new CatalogClient(url, { systemKey });
  const database = new Database({ url, systemKey, poolSize: 2, allowRlsBypass });
  try {
    if (!keyLost) await database.assertMasterKey(keys);
    const rotation = await new Secrets(new SecretStore(catalog, environment), environment).rotate();
    if (keys) await database.changeMasterKey(keys);
    const { keyId, rotated, failures } = rotation;
    await new AuditStore(database).write(PLATFORM, {
      action: 'secret.rotate',
      target: { kind: 'database', name: 'secrets' },
      by: OPERATOR_ACTOR,
      detail: { keyId, rotated, failed: failures.length },
    });
    if (json) printValue(terminal, rotation);
    else terminal.out(`${rotated} secrets were encrypted again; the key in use is ${keyId}.`);
    if (failures.length > 0) {
      throw new OperatorError(
        [
          ...failures,
          keyLost
            ? `The key of this database is now ${keyId}. Set these secrets again.`
            : 'Keep the earlier keys in BATON_MASTER_KEY_PREVIOUS until a rotation ends without this warning.',
        ].join('\n'),
      );
    }
    if (!json) terminal.err('No secret needs an earlier key: BATON_MASTER_KEY_PREVIOUS can be emptied.');
  } finally {
    await Promise.all([database.close(), catalog.close()]);
  }
}
