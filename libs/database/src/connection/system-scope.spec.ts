import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const ROOT = join(__dirname, '../../../..');

/** Where work runs in the scope `system`, which row-level security lets see every tenant, and why it must. */
const USERS: Readonly<Record<string, string>> = {
  'connection/row-security.ts': 'defines the scope',
  'connection/database.ts': 'offers it to the stores; reads which migrations were applied',
  'connection/catalog-client.ts': 'offers it to the stores of the catalog',
  'tenants/audit.store.ts': 'operators read the audit log of all tenants',
  'backup/backup-session.ts': 'a backup has the rows of all tenants',
  'catalog/failing-next.store.ts': 'versions with the label `next`, of all tenants',
  'catalog/agent.store.ts': "the operator's agents, which belong to no tenant",
  'runs/dead-letter.store.ts': 'operators see the dead letters of all tenants, and name one by its run alone',
  'dispatch/dispatch.store.ts': 'waiting runs of many tenants are given dispatch slots',
  'delegation/task-tree.store.ts': 'the sweep: suspended runs and open children of all tenants',
  'after-cancel/canceled-task.store.ts':
    'the sweep: canceled tasks of all tenants that have left work behind, such as steps to undo',
  'catalog/host.store.ts': 'a host name is looked up before its tenant is known; operators list all hosts',
  'inspection/has-master-key.ts': 'whether a secret of any tenant is encrypted',
  'inspection/installation.store.ts':
    'facts about the whole database: paused schedules of all tenants, the last backup',
  'inspection/inspect-database.ts': 'which master keys have encrypted secrets, of all tenants',
  'dispatch/queue.store.ts': 'operators see the waiting and running runs of all tenants',
  'runs/leases/heartbeat.ts': 'heartbeats: the runs of a worker, of many tenants at once',
  'push/dead-push.store.ts': 'operators see the dead push configs of all tenants, and name the task alone',
  'push/push-delivery.store.ts': 'workers claim due push configs of all tenants',
  'connection/master-key-check.ts':
    'compares the master key with that of the database, and with those of all secrets',
  'migrations/audit-guard.ts': 'asks whether there are tenants, and writes the record of the platform',
  'migrations/is-unused.ts': 'asks whether there are tenants',
  'migrations/migration-session.ts': 'a migration changes the rows of all tenants',
  'migrations/shifted-times.ts': 'mends the stored times of all tenants',
  'migrations/system-key.ts': 'asks whether there are tenants, and writes the record of the platform',
  'retention/retention.store.ts': 'the tasks of all tenants that are over their retention',
  'runs/find-work.ts': 'the sweeper: whether runs of any tenant need it',
  'runs/leases/end-orphaned-leases.ts': 'the sweeper: runs of many tenants at once',
  'runs/leases/reclaim-expired.ts': 'the sweeper: runs of many tenants at once',
  'runs/take-stale-queued.ts': 'the sweeper: runs of many tenants at once',
  'bulk/bulk.store.ts': 'operations of all tenants that are due',
  'runs/open-by-version.ts': 'the code that workers have, which belongs to no tenant',
  'runs/park.ts': 'the sweeper: parked runs of many tenants at once',
  'runs/fail-poisoned.ts': 'the sweeper: runs of many tenants at once',
  'runs/end-stray-runs.ts': 'the sweeper: runs of many tenants at once',
  'runs/count-active.ts': 'gauges: runs of many tenants at once',
  'spending/spending-warning.store.ts': 'caps of all tenants that are nearly used',
  'schedules/schedule.store.ts': 'the schedules of all tenants that are due',
  'catalog/secret.store.ts': 'a rotation encrypts the secrets of all tenants anew',
  'issuers/issuer.store.ts':
    'an issuer is looked up before the tenant of its token is known; operators list all',
  'tenants/stream-count.store.ts': 'the heartbeat of an API process: its streams of many tenants at once',
  'tasks/heads.ts': "the relay's tick: heads of the logs of many tenants at once",
  'tasks/tenants-of-task.ts': 'operators name a task by its id alone',
  'tasks/task-reminder.store.ts': 'tasks of all tenants that wait for a person for too long',
  'tasks/wake-asking.ts': 'the sweep: tasks of all tenants whose wait for an answer is over',
  'tenants/tenant-removal.store.ts':
    'the record of a deletion belongs to the platform, and outlives the tenant',
  'tenants/tenant.store.ts':
    'operators create, list and find tenants by their slug; which of the tenants with open calls are suspended',
  'tenants/usage.store.ts': 'which tenants are to be counted; operators see what all tenants take',
  'tenants/token.store.ts': 'a token is looked up before its tenant is known',
  'tenants/operator-token.store.ts': 'tokens of operators belong to no tenant',
  'usage/usage-hours.store.ts':
    'which tenants have ended tasks that are to be added; operators see the usage of all tenants',
  'dispatch/worker.store.ts': 'workers, which run the tasks of all tenants',
};

const SYSTEM =
  /\b(systemQuery|systemQueries|inSystem|SYSTEM_SCOPE|systemScope)\b|\bcatalog\.(run|query|changeAcross)[<(]|\.prisma\b|'system'/;

/** A role of messages to a model is no scope. */
const MODEL_ROLE = /\brole [=!]== 'system'|\brole: 'system'|'system', 'user', 'assistant'/g;

const sourcesBelow = (folder: string): string[] =>
  readdirSync(join(ROOT, folder), { recursive: true, encoding: 'utf8' })
    .filter((file) => file.endsWith('.ts') && !/spec\.ts$|fixture\.ts$|generated|testing\//.test(file))
    .map((file) => join(folder, file));

describe('the scope of all tenants', () => {
  const users = ['libs', 'apps']
    .flatMap(sourcesBelow)
    .filter((file) => SYSTEM.test(readFileSync(join(ROOT, file), 'utf8').replaceAll(MODEL_ROLE, '')));

  it('is used in the stores that are listed here, each with its reason, and nowhere else', () => {
    expect(users.sort()).toEqual(
      Object.keys(USERS)
        .map((file) => join('libs/database/src', file))
        .sort(),
    );
  });
});
