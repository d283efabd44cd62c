import type { Environment } from '@baton/config';
import type { DatabaseFacts } from '@baton/database';
import type { RedisFacts } from '@baton/messaging';
import { formatBytes } from '@baton/telemetry';

/** The subject of a check, and its finding. No text holds a secret. */
export interface Check {
  name: string;
  status: 'ok' | 'warning' | 'fault';
  found: string;
  /** What to do about it. Unset if it is `ok`. */
  remedy?: string;
}

const MINUTE_MS = 60_000;
/** Clocks with NTP differ by less. */
const CLOCK_WARNING_MS = 2_000;
/** From here on signatures and tokens of others are refused. */
const CLOCK_FAULT_MS = MINUTE_MS;
const GIB = 2 ** 30;
/** The oldest major version that the tests run on. */
const MIN_POSTGRES = 14;
/** The newest major version that the tests run on. */
const MAX_POSTGRES = 18;
const MIN_REDIS = '6.2';

/** A check that has found no problem. */
export const ok = (name: string, found: string): Check => ({ name, status: 'ok', found });
/** Baton works, but something should be changed. @param remedy what to do */
export const warning = (name: string, found: string, remedy: string): Check => ({
  name,
  status: 'warning',
  found,
  remedy,
});
/** Baton does not work. @param remedy what to do */
export const fault = (name: string, found: string, remedy: string): Check => ({
  name,
  status: 'fault',
  found,
  remedy,
});

/** @param needed as in `engines` of package.json, such as `>=20.19` */
export function checkNode(version: string, needed: string): Check {
  const name = 'Node.js';
  if (compare(version, needed.replace('>=', '')) >= 0) return ok(name, version);
  return fault(name, `${version} is too old`, `Install Node.js ${needed.replace('>=', '')} or later.`);
}

/** @param problem why this machine has no sandbox; undefined if it has one */
export function checkSandbox(mode: Environment['executorSandbox'], problem: string | undefined): Check {
  const name = 'Sandbox';
  const risk = 'agents in code can read the files of the worker that runs here';
  if (mode === 'off')
    return warning(name, `EXECUTOR_SANDBOX is off: ${risk}`, 'Set it to auto, or to required.');
  if (problem === undefined) return ok(name, 'agents in code run in one');
  const remedy = 'Run workers on Linux 5.13 or later, and see docs/agents/executors.md#the-sandbox.';
  if (mode === 'required')
    return fault(name, `EXECUTOR_SANDBOX is required, and there is none: ${problem}`, remedy);
  return warning(name, `there is none, so ${risk}: ${problem}`, remedy);
}

/** The faults of a database that answers. */
export function checkDatabase(facts: DatabaseFacts, environment: Environment): Check[] {
  return [
    checkPostgres(facts),
    checkSession(facts),
    checkRole(facts),
    checkRowSecurity(facts, environment),
    checkSystemKey(facts, environment),
    checkMigrations(facts),
    ...checkAuditLog(facts),
    ...checkTimes(facts),
    ...checkRetention(facts, environment),
    checkDurability(facts),
    checkConnections(facts, environment),
    checkClock('Clock of Postgres', facts),
  ];
}

function checkPostgres(facts: DatabaseFacts): Check {
  const { version, versionNumber, host, database, isReadOnly, isDiskFull, bytes } = facts;
  const name = 'Postgres';
  const found = `${version} at ${host}, database ${database} with ${formatBytes(bytes)}`;
  const major = Math.floor(versionNumber / 10_000);
  if (isReadOnly) {
    return fault(
      name,
      `${found}, and it may only be read`,
      'Let DATABASE_URL name the primary, not a standby, and remove default_transaction_read_only.',
    );
  }
  if (isDiskFull) {
    return fault(
      name,
      `${found}, and it cannot write, because its disk is full`,
      'Make room, or enlarge the disk (docs/operating/runbooks.md#batondatabasediskisfull).',
    );
  }
  if (major < MIN_POSTGRES) {
    return fault(name, `${found}: it is too old`, `Upgrade it to Postgres ${MIN_POSTGRES} or later.`);
  }
  if (major <= MAX_POSTGRES) return ok(name, found);
  return warning(
    name,
    `${found}: Baton is not tested with it`,
    `Use Postgres ${MIN_POSTGRES} to ${MAX_POSTGRES}.`,
  );
}

/** The standby of DATABASE_REPLICA_URL. */
export function checkReplica(facts: DatabaseFacts, environment: Environment): Check {
  const name = 'Replica';
  const { version, host, isReadOnly } = facts;
  const found = `${version} at ${host}`;
  if (!isReadOnly) {
    return warning(
      name,
      `${found} is no standby, so the primary serves lists`,
      'Let DATABASE_REPLICA_URL name a streaming standby, or remove it (docs/operating/postgres.md).',
    );
  }
  const security = checkRowSecurity(facts, environment);
  return security.status === 'fault' ? { ...security, name } : ok(name, `${found} is a standby`);
}

function checkRole({ role, ownsTables, refusedTables }: DatabaseFacts): Check {
  const name = 'Role';
  if (refusedTables.length > 0) {
    const tables = listOf(refusedTables);
    return fault(
      name,
      `${role} may not read and write ${tables}`,
      `As the owner of the tables: GRANT SELECT, INSERT, UPDATE, DELETE ON ALL TABLES IN SCHEMA public TO "${role}" (docs/operating/security.md).`,
    );
  }
  if (!ownsTables) return ok(name, `${role} may use the tables and does not own them`);
  return warning(
    name,
    `${role} owns the tables, so it could remove their row security and the audit log`,
    'Give the processes another role than the one that migrates (docs/operating/security.md).',
  );
}

/** A sentence that names the fault, then the remedy. */
export function faultAndRemedy(text: string): [found: string, remedy: string] {
  const colon = text.indexOf(': ');
  return [text.slice(0, colon), sentence(text.slice(colon + 2))];
}

function checkSession({ session }: DatabaseFacts): Check {
  const name = 'Session';
  return session === undefined
    ? ok(name, 'has the settings that statements rely on')
    : fault(name, ...faultAndRemedy(session));
}

/** No finding if the default retention applies, or the operator has decided. */
function checkRetention(
  { tenantsWithoutRetention: tenants }: DatabaseFacts,
  { isRetentionSet }: Environment,
): Check[] {
  if (tenants === 0 || isRetentionSet) return [];
  return [
    warning(
      'Retention',
      `${tenants} tenants of an earlier release keep their ended tasks for ever`,
      'Set LIMIT_RETENTION_DAYS to a number of days, or to none to keep them (docs/operating/retention.md).',
    ),
  ];
}

/** Releases up to 0.2.0 stored times in the time zone of Postgres. */
function checkTimes({ shiftedTimes }: DatabaseFacts): Check[] {
  const name = 'Stored times';
  if (shiftedTimes === undefined) return [];
  const { count, zone, unknownTokens } = shiftedTimes;
  if (count > 0) {
    return [
      fault(
        name,
        `${count} are off, because an earlier release has stored them in the time zone of Postgres: tokens may be valid for too long, or too short`,
        'Stop all processes of that release, then run `npm run migrate`.',
      ),
    ];
  }
  if (unknownTokens === 0) return [ok(name, 'agree with the audit log')];
  return [
    warning(
      name,
      `${unknownTokens} tokens may end too early or too late by the offset of ${zone}: the audit log has no record of their beginning`,
      'Give them their end again: `npx baton tokens rotate` with `--expires`, or revoke them.',
    ),
  ];
}

function checkRowSecurity({ rowSecurity }: DatabaseFacts, { allowRlsBypass }: Environment): Check {
  const name = 'Row security';
  if (rowSecurity === undefined) return ok(name, 'binds the role on every table of tenants');
  const [found, text] = faultAndRemedy(rowSecurity);
  return allowRlsBypass ? warning(name, `${found} (ALLOW_RLS_BYPASS)`, text) : fault(name, found, text);
}

function checkSystemKey({ asksForSystemKey }: DatabaseFacts, { databaseSystemKey }: Environment): Check {
  const name = 'System key';
  if (asksForSystemKey) return ok(name, 'the database asks for DATABASE_SYSTEM_KEY');
  if (databaseSystemKey !== undefined) {
    return warning(
      name,
      'DATABASE_SYSTEM_KEY is set, and the database does not ask for it',
      'When every process has it, run `npm run migrate -- --system-key enforce`.',
    );
  }
  return warning(
    name,
    'the database opens the scope of all tenants without a key',
    'Set DATABASE_SYSTEM_KEY for every process, then run `npm run migrate -- --system-key enforce`.',
  );
}

/** A role that owns the tables is a matter of `checkRole`. */
function checkAuditLog({ auditGuard, ownsTables }: DatabaseFacts): Check[] {
  const name = 'Audit log';
  if (auditGuard === 'unknown') return [];
  if (auditGuard === 'announced') {
    return [
      warning(
        name,
        'processes may delete its records, as those of release 0.2.0 do',
        'When no process of release 0.2.0 is left, run `npm run migrate -- --audit-log enforce` (docs/operating/audit.md).',
      ),
    ];
  }
  if (ownsTables) return [];
  return [ok(name, 'only the owner of the tables deletes its records')];
}

function checkMigrations({ migrations }: DatabaseFacts): Check {
  const name = 'Migrations';
  const { pending, unknown, unfinished } = migrations;
  if (unfinished.length > 0) {
    return fault(
      name,
      `${listOf(unfinished)} has begun and not ended`,
      'Wait for the migration that runs, or run `npm run migrate`, which continues where it stopped.',
    );
  }
  if (pending.length > 0) {
    const one = pending.length === 1 ? '1 is pending' : `${pending.length} are pending`;
    return fault(name, `${one}: ${listOf(pending)}`, 'Run `npm run migrate`.');
  }
  if (unknown.length === 0) return ok(name, 'all are applied');
  return warning(
    name,
    `the database has some of a later release: ${listOf(unknown)}`,
    'Run the release that made them. Only the one before it may run beside it (docs/operating/upgrading.md).',
  );
}

function checkDurability({ settings }: DatabaseFacts): Check {
  const name = 'Durability';
  const off = Object.entries(settings)
    .filter(([, value]) => value === 'off')
    .map(([key]) => key);
  const { synchronous_commit, synchronous_standby_names } = settings;
  if (off.length === 0 && synchronous_commit === 'local' && synchronous_standby_names !== '') {
    return warning(
      name,
      'synchronous_commit is local, so no commit waits for the synchronous standby: a fail-over may lose accepted tasks',
      'Set synchronous_commit to on in Postgres (docs/operating/postgres.md#fail-over-to-a-standby).',
    );
  }
  if (off.length === 0) return ok(name, 'a commit is on disk before a caller gets its answer');
  return fault(
    name,
    `${listOf(off)} is off: a power failure loses accepted tasks`,
    `Set ${listOf(off)} to on in Postgres.`,
  );
}

function checkConnections({ connections }: DatabaseFacts, { databasePoolSize }: Environment): Check {
  const name = 'Connections';
  const { used, max } = connections;
  const found = `${used} of ${max} are in use; each process takes up to ${databasePoolSize} and a few more`;
  if (max - used >= databasePoolSize) return ok(name, found);
  return warning(name, found, 'Raise max_connections of Postgres, or lower DATABASE_POOL_SIZE.');
}

/** The faults of a Redis that answers. */
export function checkRedis(facts: RedisFacts): Check[] {
  const { address, version, policy, memory, writes, isSaving } = facts;
  const name = 'Redis';
  const server =
    compare(version, MIN_REDIS) < 0
      ? fault(name, `${version} at ${address} is too old`, `Upgrade it to Redis ${MIN_REDIS} or later.`)
      : ok(name, `${version} at ${address}`);
  return [
    server,
    writes === true
      ? ok('Redis writes', 'are accepted')
      : fault(
          'Redis writes',
          `are refused: ${writes}`,
          /OOM/.test(writes)
            ? 'Raise maxmemory, or remove what is not of Baton. Tasks are accepted and wait meanwhile.'
            : 'Let REDIS_URL name the primary, correct what Redis reports, or give its user its rights (docs/operating/redis.md#a-user-with-few-rights).',
        ),
    checkPolicy(policy, memory),
    isSaving
      ? ok('Redis disk', 'its last saves were written, or it does not save: Baton needs no copy of Redis')
      : warning('Redis disk', 'its last save failed', 'Look at the log of Redis and at its disk.'),
    checkClock('Clock of Redis', { clockOffsetMs: facts.clockOffsetMs, clockErrorMs: 0 }),
  ];
}

function checkPolicy(policy: string, { used, max }: RedisFacts['memory']): Check {
  const name = 'Redis memory';
  const found = `${policy}, ${formatBytes(used)} used of ${max === 0 ? 'no limit' : formatBytes(max)}`;
  if (policy !== 'noeviction') {
    return fault(
      name,
      `${found}: it may delete the queue`,
      'Set maxmemory-policy to noeviction, and use another Redis for caches.',
    );
  }
  if (max === 0 || used < max * 0.8) return ok(name, found);
  return warning(name, found, 'Raise maxmemory: a full Redis refuses sends for a while, and loses none.');
}

/** @param clock that of a server, against this machine */
export function checkClock(
  name: string,
  clock: Pick<DatabaseFacts, 'clockOffsetMs' | 'clockErrorMs'>,
): Check {
  // What a slow answer may explain is no difference.
  const difference = Math.max(0, Math.abs(clock.clockOffsetMs) - clock.clockErrorMs);
  const seconds = (difference / 1000).toFixed(1);
  const way = clock.clockOffsetMs > 0 ? 'ahead of' : 'behind';
  if (difference < CLOCK_WARNING_MS) return ok(name, 'agrees with this machine');
  const judge = difference < CLOCK_FAULT_MS ? warning : fault;
  return judge(
    name,
    `is ${seconds} s ${way} that of this machine`,
    'Let NTP set the clocks of both machines (chrony, systemd-timesyncd).',
  );
}

/** Whether the master keys of this environment read all that is stored. @param knows whether the environment has the key with this id */
export function checkMasterKey(
  { sealedBy, masterKeyId }: Pick<DatabaseFacts, 'sealedBy' | 'masterKeyId'>,
  newest: string | undefined,
  knows: (keyId: string) => boolean,
): Check {
  const name = 'Master key';
  const unknown = sealedBy.filter(({ keyId }) => !knows(keyId));
  if (unknown.length > 0) {
    const count = unknown.reduce((sum, each) => sum + each.count, 0);
    const ids = listOf(unknown.map(({ keyId }) => keyId));
    return fault(
      name,
      `${count} stored values are encrypted with a key that is not here: ${ids}`,
      'Set BATON_MASTER_KEY to that key, or add it to BATON_MASTER_KEY_PREVIOUS. If it is lost, run `npx baton secrets rotate --key-lost` and set these secrets again.',
    );
  }
  if (masterKeyId !== undefined && newest !== undefined && !knows(masterKeyId)) {
    return fault(
      name,
      `the key of this database is ${masterKeyId}, and the key here is ${newest}: processes with this key do not start`,
      'Set BATON_MASTER_KEY to the key of the database. If it is lost, run `npx baton secrets rotate --key-lost`.',
    );
  }
  if (newest === undefined) {
    return warning(
      name,
      'is not set, so tenants cannot store secrets',
      'Set BATON_MASTER_KEY to the output of `openssl rand -base64 32`, the same for every process.',
    );
  }
  const old = sealedBy.filter(({ keyId }) => keyId !== newest);
  if (old.length === 0 && masterKeyId !== undefined && masterKeyId !== newest) {
    return warning(
      name,
      `the key of this database is ${masterKeyId}, and ${newest} encrypts`,
      'Run `npx baton secrets rotate` to end the change of keys.',
    );
  }
  if (old.length === 0) return ok(name, `${newest} reads all stored secrets`);
  return warning(
    name,
    `earlier keys are still in use: ${listOf(old.map(({ keyId }) => keyId))}`,
    'Run `npx baton secrets rotate` before you remove them.',
  );
}

/** @param space of the file system of `folder`, in bytes */
export function checkDisk(name: string, folder: string, space: { free: number; total: number }): Check {
  const share = space.total === 0 ? 0 : space.free / space.total;
  const found = `${formatBytes(space.free)} free (${Math.round(share * 100)} %) at ${folder}`;
  if (space.free < GIB && share < 0.05) return fault(name, found, 'Make room, or enlarge the disk, now.');
  if (space.free < 5 * GIB && share < 0.1) return warning(name, found, 'Make room, or enlarge the disk.');
  return ok(name, found);
}

/** Versions by their numbers; negative if `a` is lower. */
function compare(a: string, b: string): number {
  const [left, right] = [a, b].map((text) => text.split('.').map((part) => parseInt(part, 10) || 0));
  for (let i = 0; i < 3; i++) {
    const difference = (left?.[i] ?? 0) - (right?.[i] ?? 0);
    if (difference !== 0) return difference;
  }
  return 0;
}

/** Names in one line of the report. */
const MAX_NAMES = 5;

function listOf(names: readonly string[]): string {
  const more = names.length - MAX_NAMES;
  const shown = names.slice(0, MAX_NAMES).join(', ');
  return more > 0 ? `${shown} and ${more} more` : shown;
}

/** With a capital letter and a full stop. */
export const sentence = (text: string): string =>
  `${text.charAt(0).toUpperCase()}${text.slice(1)}${text.endsWith('.') ? '' : '.'}`;
