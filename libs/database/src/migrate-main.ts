import { type LocalEnvironment, loadLocalEnvironment } from '@baton/config';
import { parseArgs } from 'node:util';
import { enforceAuditGuard, releaseAuditGuard } from './migrations/audit-guard.js';
import { migrate, pendingMigrations } from './migrations/migrate.js';
import { roleOf } from './migrations/role-rights.js';
import { enforceSystemKey, releaseSystemKey } from './migrations/system-key.js';

const HELP = `Brings the database of MIGRATE_DATABASE_URL, or else of DATABASE_URL, up to date while the system is in use.

  npm run migrate -- [options]

  --dry-run                 only list the pending migrations
  --lock-timeout <ms>       how long a statement may wait for a lock while others queue behind it (2000)
  --lock-patience <ms>      how long to retry a statement before the migration fails (600000)
  --folder <path>           folder with the migrations (prisma/migrations)
  --system-key enforce      then let only processes with DATABASE_SYSTEM_KEY work across tenants (docs/operating/security.md)
  --system-key release      then ask no process for a key
  --audit-log enforce       then let only the owner of the tables delete records of the audit log (docs/operating/audit.md)
  --audit-log release       then let processes of release 0.2.0 delete such records`;

/** Undefined if the role of the processes migrates. */
function roleOfProcesses(settings: LocalEnvironment): string | undefined {
  const url = settings.databaseDirectUrl ?? settings.databaseUrl;
  return settings.migrateDatabaseUrl !== undefined && url !== undefined ? roleOf(url) : undefined;
}

/** `npm run migrate`, for the database of the environment or of `.env`. Exit code 1 with one plain sentence if it cannot. */
async function main(): Promise<void> {
  const { values } = parseArgs({
    options: {
      'dry-run': { type: 'boolean' },
      'lock-timeout': { type: 'string', default: '2000' },
      'lock-patience': { type: 'string', default: '600000' },
      folder: { type: 'string' },
      'system-key': { type: 'string' },
      'audit-log': { type: 'string' },
      help: { type: 'boolean' },
    },
  });
  if (values.help) {
    console.log(HELP);
    return;
  }
  const settings = loadLocalEnvironment();
  const { databaseSystemKey: systemKey, databaseSystemKeyPrevious } = settings;
  const url = settings.migrateDatabaseUrl ?? settings.databaseDirectUrl ?? settings.databaseUrl;
  const keys = [systemKey, databaseSystemKeyPrevious].filter((key) => key !== undefined);
  const keyAction = actionOf('system-key', values['system-key']);
  const auditAction = actionOf('audit-log', values['audit-log']);
  if (keyAction === 'enforce' && systemKey === undefined)
    throw new Error('DATABASE_SYSTEM_KEY is not set: set it to the key that every process has.');
  if (!url) throw new Error('DATABASE_URL is not set: name the Postgres to migrate.');
  if (values['dry-run']) return plan(url, values.folder);
  const begin = performance.now();
  const applied = await migrate(url, {
    ...(values.folder && { folder: values.folder }),
    role: roleOfProcesses(settings),
    // `enforceSystemKey` and `releaseSystemKey` below change the key.
    ...(keyAction === undefined && { systemKey }),
    lockTimeoutMs: milliseconds('lock-timeout', values['lock-timeout']),
    lockPatienceMs: milliseconds('lock-patience', values['lock-patience']),
    report: (line) => console.log(line),
  });
  const seconds = ((performance.now() - begin) / 1000).toFixed(1);
  console.log(
    applied.length > 0
      ? `Applied ${applied.length} migrations in ${seconds} s. The database is up to date.`
      : 'The database is up to date.',
  );
  // Before the change of the key: afterwards the database may require another one.
  if (auditAction === 'enforce') {
    await enforceAuditGuard(url, systemKey);
    console.log('Only the owner of the tables deletes records of the audit log.');
  }
  if (auditAction === 'release') {
    await releaseAuditGuard(url, systemKey);
    console.log('Processes of release 0.2.0 may delete records of the audit log.');
  }
  if (keyAction === 'enforce') {
    await enforceSystemKey(url, keys);
    console.log(`The scope of all tenants now needs DATABASE_SYSTEM_KEY. Keys that open it: ${keys.length}.`);
  }
  if (keyAction === 'release') {
    await releaseSystemKey(url);
    console.log('The scope of all tenants needs no key.');
  }
}

function actionOf(name: string, text: string | undefined): 'enforce' | 'release' | undefined {
  if (text === undefined || text === 'enforce' || text === 'release') return text;
  throw new Error(`--${name} ${text}: write enforce or release.`);
}

async function plan(url: string, folder?: string): Promise<void> {
  const pending = await pendingMigrations(url, folder);
  for (const { name, steps } of pending) {
    console.log(name);
    steps.forEach(({ kind, label }, index) =>
      console.log(`  ${index + 1}/${steps.length} ${kind}: ${label}`),
    );
  }
  console.log(
    pending.length > 0 ? `${pending.length} pending. Nothing was changed.` : 'The database is up to date.',
  );
}

function milliseconds(name: string, text: string): number {
  if (!/^[1-9]\d{0,8}$/.test(text)) throw new Error(`--${name} ${text}: set it to a number of milliseconds.`);
  return Number(text);
}

main().catch((error: unknown) => {
  console.error(`Migration failed: ${error instanceof Error ? error.message : String(error)}`);
  process.exitCode = 1;
});
