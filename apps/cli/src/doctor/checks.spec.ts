import type { Environment } from '@baton/config';
import type { DatabaseFacts } from '@baton/database';
import type { RedisFacts } from '@baton/messaging';
import {
  type Check,
  checkClock,
  checkDatabase,
  checkDisk,
  checkMasterKey,
  checkNode,
  checkRedis,
  checkReplica,
  checkSandbox,
} from './checks.js';

const GIB = 2 ** 30;

const facts: DatabaseFacts = {
  version: '18.4',
  versionNumber: 180_004,
  host: 'db:5432',
  database: 'baton',
  role: 'baton',
  ownsTables: false,
  refusedTables: [],
  session: undefined,
  shiftedTimes: { count: 0, zone: 'UTC', unknownTokens: 0 },
  rowSecurity: undefined,
  asksForSystemKey: true,
  auditGuard: 'owner',
  migrations: { pending: [], unknown: [], unfinished: [] },
  clockOffsetMs: 12,
  clockErrorMs: 1,
  isReadOnly: false,
  isDiskFull: false,
  settings: { fsync: 'on', synchronous_commit: 'on', full_page_writes: 'on', synchronous_standby_names: '' },
  connections: { used: 10, max: 100 },
  bytes: GIB,
  dataDirectory: undefined,
  masterKeyId: undefined,
  tenantsWithoutRetention: 0,
  sealedBy: [],
};
const environment = { databasePoolSize: 16 } as Environment;
const redis: RedisFacts = {
  address: 'redis:6379',
  version: '8.0.2',
  policy: 'noeviction',
  memory: { used: 1000, max: 0 },
  writes: true,
  isSaving: true,
  clockOffsetMs: 3,
};

/** Those that are not ok, as `status name: remedy`. */
const wrong = (checks: readonly Check[]): string[] =>
  checks
    .filter(({ status }) => status !== 'ok')
    .map(({ status, name, remedy }) => `${status} ${name}: ${remedy}`);

const ofDatabase = (changes: Partial<DatabaseFacts>, settings: Partial<Environment> = {}) =>
  wrong(checkDatabase({ ...facts, ...changes }, Object.assign({}, environment, settings)));
const ofRedis = (changes: Partial<RedisFacts>) => wrong(checkRedis({ ...redis, ...changes }));

describe('the check of a replica', () => {
  const ofReplica = (changes: Partial<DatabaseFacts>) =>
    wrong([checkReplica({ ...facts, isReadOnly: true, ...changes }, environment)]);

  it('finds nothing wrong with a standby', () => {
    expect(ofReplica({})).toEqual([]);
  });

  it('names an unusable server, and one that isolates no tenants', () => {
    expect(ofReplica({ isReadOnly: false })).toEqual([
      expect.stringMatching(/^warning Replica: Let DATABASE_REPLICA_URL name a streaming standby/),
    ]);
    expect(ofReplica({ rowSecurity: 'Row-level security does not bind: ENABLE it.' })).toEqual([
      'fault Replica: ENABLE it.',
    ]);
  });
});

describe('the checks of a database', () => {
  it('find nothing wrong with a good one', () => {
    expect(ofDatabase({})).toEqual([]);
  });

  it('name a session that is not set up, with the remedy', () => {
    const session = 'The setting jit is on in a session: set DATABASE_DIRECT_URL.';
    expect(ofDatabase({ session })).toEqual(['fault Session: Set DATABASE_DIRECT_URL.']);
  });

  it('name times that an earlier release has stored wrongly, and tokens whose time is uncertain', () => {
    const zone = 'America/New_York';
    expect(ofDatabase({ shiftedTimes: { count: 3, zone, unknownTokens: 1 } })).toEqual([
      'fault Stored times: Stop all processes of that release, then run `npm run migrate`.',
    ]);
    expect(ofDatabase({ shiftedTimes: { count: 0, zone, unknownTokens: 1 } })).toEqual([
      expect.stringMatching(/^warning Stored times: Give them their end again/),
    ]);
    expect(ofDatabase({ shiftedTimes: undefined })).toEqual([]);
  });

  it.each<[string, Partial<DatabaseFacts>, RegExp]>([
    ['is old', { versionNumber: 130_012 }, /^fault Postgres: Upgrade it to Postgres 14/],
    ['is newer than tested', { versionNumber: 190_000 }, /^warning Postgres: Use Postgres 14 to 18/],
    ['is a standby', { isReadOnly: true }, /^fault Postgres: Let DATABASE_URL name the primary/],
    ['has a full disk', { isDiskFull: true }, /^fault Postgres: Make room, or enlarge the disk/],
    [
      'refuses tables',
      { refusedTables: ['runs'] },
      /^fault Role: As the owner of the tables: GRANT .* TO "baton"/,
    ],
    ['belongs to the role', { ownsTables: true }, /^warning Role: Give the processes another role/],
    [
      'lets every process delete records',
      { auditGuard: 'announced' },
      /^warning Audit log: When no process of release 0\.2\.0 is left, run `npm run migrate -- --audit-log enforce`/,
    ],
    [
      'keeps the tasks of tenants of an earlier release',
      { tenantsWithoutRetention: 2 },
      /^warning Retention: Set LIMIT_RETENTION_DAYS to a number of days, or to none/,
    ],
    ['asks for no key', { asksForSystemKey: false }, /^warning System key: Set DATABASE_SYSTEM_KEY/],
    [
      'has an open table',
      { rowSecurity: 'Row-level security does not bind the role "b" on tasks: ENABLE and FORCE it.' },
      /^fault Row security: ENABLE and FORCE it\.$/,
    ],
    [
      'waits for a migration',
      { migrations: { ...facts.migrations, pending: ['1_a'] } },
      /^fault Migrations: Run `npm run migrate`/,
    ],
    [
      'has a migration that stopped halfway',
      { migrations: { ...facts.migrations, unfinished: ['1_a'], pending: ['1_a'] } },
      /^fault Migrations: Wait for the migration that runs, or run `npm run migrate`/,
    ],
    [
      'is of a later release',
      { migrations: { ...facts.migrations, unknown: ['9_z'] } },
      /^warning Migrations: Run the release that made them/,
    ],
    [
      'does not wait for the disk',
      { settings: { ...facts.settings, fsync: 'off', synchronous_commit: 'off' } },
      /^fault Durability: Set fsync, synchronous_commit to on/,
    ],
    [
      'does not wait for its synchronous standby',
      { settings: { ...facts.settings, synchronous_commit: 'local', synchronous_standby_names: 'b' } },
      /^warning Durability: Set synchronous_commit to on/,
    ],
    [
      'is nearly full',
      { connections: { used: 90, max: 100 } },
      /^warning Connections: Raise max_connections/,
    ],
    ['lives in the past', { clockOffsetMs: -5_000 }, /^warning Clock of Postgres: Let NTP/],
  ])('find that it %s', (_, changes, line) => {
    expect(ofDatabase(changes)).toEqual([expect.stringMatching(line)]);
  });

  it('warn of a role that bypasses row security where the operator allows it', () => {
    const rowSecurity = 'The role "postgres" bypasses it: use another role.';
    expect(ofDatabase({ rowSecurity }, { allowRlsBypass: true })).toEqual([
      'warning Row security: Use another role.',
    ]);
  });
});

describe('the checks of Redis', () => {
  it('find nothing wrong with a good one', () => {
    expect(ofRedis({})).toEqual([]);
  });

  it.each<[string, Partial<RedisFacts>, RegExp]>([
    ['is old', { version: '6.0.16' }, /^fault Redis: Upgrade it to Redis 6\.2/],
    ['evicts keys', { policy: 'allkeys-lru' }, /^fault Redis memory: Set maxmemory-policy to noeviction/],
    ['is nearly full', { memory: { used: 90, max: 100 } }, /^warning Redis memory: Raise maxmemory/],
    [
      'refuses writes',
      { writes: 'READONLY You can’t write' },
      /^fault Redis writes: Let REDIS_URL name the primary/,
    ],
    [
      'is full',
      { writes: "OOM command not allowed when used memory > 'maxmemory'." },
      /^fault Redis writes: Raise maxmemory/,
    ],
    ['could not save', { isSaving: false }, /^warning Redis disk: Look at the log of Redis/],
    ['lives in the future', { clockOffsetMs: 90_000 }, /^fault Clock of Redis: Let NTP/],
  ])('find that it %s', (_, changes, line) => {
    expect(ofRedis(changes)).toEqual([expect.stringMatching(line)]);
  });
});

describe('the other checks', () => {
  it('compare clocks only as exactly as the answer was fast', () => {
    expect(checkClock('Clock', { clockOffsetMs: 4_000, clockErrorMs: 3_500 }).status).toBe('ok');
    expect(checkClock('Clock', { clockOffsetMs: 4_000, clockErrorMs: 10 })).toMatchObject({
      status: 'warning',
      found: 'is 4.0 s ahead of that of this machine',
    });
  });

  it('include each key that has encrypted something', () => {
    const sealedBy = [
      { keyId: 'old', count: 2 },
      { keyId: 'new', count: 1 },
    ];
    const status = (newest: string | undefined, ...known: string[]) =>
      checkMasterKey({ sealedBy, masterKeyId: 'new' }, newest, (keyId) => known.includes(keyId)).status;
    expect(status('new', 'new', 'old')).toBe('warning');
    expect(status('new', 'new')).toBe('fault');
    expect(status(undefined)).toBe('fault');
    const none = { sealedBy: [], masterKeyId: undefined };
    expect(checkMasterKey(none, undefined, () => false).status).toBe('warning');
    const used = { sealedBy: [{ keyId: 'new', count: 1 }], masterKeyId: 'new' };
    expect(checkMasterKey(used, 'new', () => true).status).toBe('ok');
    // Nothing is encrypted yet.
    expect(checkMasterKey({ ...none, masterKeyId: 'new' }, 'stray', (id) => id === 'stray')).toMatchObject({
      status: 'fault',
      found:
        'the key of this database is new, and the key here is stray: processes with this key do not start',
    });
    expect(checkMasterKey({ ...none, masterKeyId: 'old' }, 'new', () => true)).toMatchObject({
      status: 'warning',
      remedy: 'Run `npx baton secrets rotate` to end the change of keys.',
    });
  });

  it('look at the sandbox of agents in code', () => {
    const found = (mode: Environment['executorSandbox'], problem?: string) =>
      checkSandbox(mode, problem).status;
    expect([found('auto'), found('required'), found('off')]).toEqual(['ok', 'ok', 'warning']);
    expect([found('auto', 'old'), found('required', 'old')]).toEqual(['warning', 'fault']);
    expect(checkSandbox('auto', 'only Linux has one').found).toContain('only Linux has one');
  });

  it('look at versions and at disks', () => {
    expect(checkNode('20.19.0', '>=20.19').status).toBe('ok');
    expect(checkNode('20.9.0', '>=20.19').status).toBe('fault');
    const disk = (free: number, total: number) =>
      checkDisk('Disk', '/', { free: free * GIB, total: total * GIB }).status;
    expect([disk(50, 100), disk(6, 100), disk(4, 100), disk(0.5, 100)]).toEqual([
      'ok',
      'ok',
      'warning',
      'fault',
    ]);
    // A small disk may be meant so.
    expect(disk(0.5, 2)).toBe('ok');
  });
});
