import { LIMITS, type TenantLimits } from './limits.js';
import { listenAddress } from './listen-address.js';
import { type MasterKeySource, readMasterKeys } from './master-key.js';
import {
  environmentName,
  isBatonSecret,
  LOCAL_GROUPS,
  PROCESS_GROUPS,
  type Setting,
  type SettingGroup,
} from './settings.js';
import { EnvironmentError } from './environment-error.js';
import { type EnvironmentSource, processEnvironment } from './environment-source.js';

type SettingGroups = Readonly<Record<string, SettingGroup>>;

type SettingValues<G extends SettingGroup> = {
  readonly [Key in keyof G['settings']]: G['settings'][Key] extends Setting<infer T> ? T : never;
};

/** Reads the settings of `groups`. Throws EnvironmentError that names every bad setting at once. */
function readSettings<G extends SettingGroups>(
  groups: G,
  source: EnvironmentSource,
): { [Name in keyof G]: SettingValues<G[Name]> } {
  const problems = new Set<string>();
  const values: Record<string, Record<string, unknown>> = {};
  for (const [groupName, group] of Object.entries(groups)) {
    const ofGroup: Record<string, unknown> = (values[groupName] = {});
    for (const [key, setting] of Object.entries(group.settings)) {
      const name = environmentName(key, group);
      // An empty value counts as not set: compose files pass `KEY=` for a key without a value.
      const result = setting.value.safeParse(source[name]?.trim() || undefined);
      for (const { message } of result.error?.issues ?? [])
        problems.add(describe(name, source[name], message));
      ofGroup[key] = result.data;
    }
  }
  if (problems.size > 0) throw new EnvironmentError([...problems]);
  return values as { [Name in keyof G]: SettingValues<G[Name]> };
}

function describe(name: string, value: string | undefined, remedy: string): string {
  if (!value?.trim()) return `${name} is not set: ${remedy}.`;
  if (isBatonSecret(name)) return `${name} is not valid: ${remedy}.`;
  return `${name} is ${JSON.stringify(value)}: ${remedy}.`;
}

/** Longer than any turn of a healthy event loop. */
const DEFAULT_LOOP_STALL_MS = 15_000;

function readProcess(source: EnvironmentSource) {
  const { services, api, worker, everyProcess, limits } = readSettings(PROCESS_GROUPS, source);
  const defaultLimits: Readonly<TenantLimits> = { ...limits, weight: LIMITS.weight.default };
  return {
    ...services,
    ...api,
    ...worker,
    ...everyProcess,
    ...masterKeysOf(everyProcess),
    /** Where sessions last as long as their connection: DATABASE_URL, unless that leads to a pooler. */
    databaseDirectUrl: services.databaseDirectUrl ?? services.databaseUrl,
    /** DATABASE_URL leads to a pooler: a session there lasts for one transaction. */
    isDatabasePooled: services.databaseDirectUrl !== undefined,
    host: listenAddress(api.host ?? '0.0.0.0'),
    managementHost: listenAddress(api.managementHost),
    /** The URL under which callers reach the API, without a slash at the end. */
    publicUrl: api.publicUrl ?? `http://localhost:${api.port}`,
    loopStallMs: everyProcess.loopStallMs ?? Math.max(DEFAULT_LOOP_STALL_MS, worker.leaseMs),
    /** The limits of tenants without their own: use `defaultLimitsOf`. */
    defaultLimits,
    /** The operator has decided how long ended tasks stay. */
    isRetentionSet: Boolean(source.LIMIT_RETENTION_DAYS?.trim()),
  };
}

function masterKeysOf(source: MasterKeySource): ReturnType<typeof readMasterKeys> {
  try {
    return readMasterKeys(source);
  } catch (error) {
    throw new EnvironmentError([(error as Error).message]);
  }
}

type ProcessSettings = Readonly<ReturnType<typeof readProcess>>;

/** Gives a class a property for each setting, of the type that the table in settings.ts has for it. */
const SettingsBase = Object as unknown as new () => ProcessSettings;

/** The typed settings of a process; inject it by class. settings.ts explains each. */
export class Environment extends SettingsBase {
  constructor(settings: ProcessSettings) {
    super();
    Object.assign(this, settings);
  }
}

/**
 * Reads and checks the environment (by default that of the process, with `.env` of the working folder).
 * Throws EnvironmentError with one sentence per bad setting; the sentences never hold the value of a secret.
 */
export function loadEnvironment(source: EnvironmentSource = processEnvironment()): Environment {
  const environment = new Environment(readProcess(source));
  const { leaseMs, leaseHeartbeatMs, loopStallMs, taskReadBytes, taskReadTotalBytes } = environment;
  // Two heartbeats must fit into a lease, or one late heartbeat costs a healthy worker its runs.
  if (leaseHeartbeatMs * 2 > leaseMs) {
    throw new EnvironmentError([
      `LEASE_HEARTBEAT_MS is ${leaseHeartbeatMs}: set it to at most half of LEASE_MS (${leaseMs}).`,
    ]);
  }
  // The event loop shows its pulse with every heartbeat: a shorter time would kill healthy workers.
  if (loopStallMs < leaseMs) {
    throw new EnvironmentError([
      `LOOP_STALL_MS is ${loopStallMs}: set it to at least LEASE_MS (${leaseMs}).`,
    ]);
  }
  if ((environment.grpcTlsCert === undefined) !== (environment.grpcTlsKey === undefined)) {
    throw new EnvironmentError([
      'Only one of GRPC_TLS_CERT and GRPC_TLS_KEY is set: set both for TLS, or neither.',
    ]);
  }
  if (taskReadTotalBytes < taskReadBytes) {
    throw new EnvironmentError([
      `TASK_READ_TOTAL_BYTES is ${taskReadTotalBytes}: set it to at least TASK_READ_BYTES (${taskReadBytes}).`,
    ]);
  }
  assertSameDatabase(environment);
  return environment;
}

/** With another database, `npm run migrate` or a restore would change the wrong one. */
function assertSameDatabase(urls: {
  databaseUrl?: string | undefined;
  databaseDirectUrl?: string | undefined;
  migrateDatabaseUrl?: string | undefined;
}): void {
  if (urls.databaseDirectUrl && !urls.databaseUrl) {
    throw new EnvironmentError([
      'DATABASE_DIRECT_URL is set, and DATABASE_URL is not: set DATABASE_URL to the pooler, or remove DATABASE_DIRECT_URL.',
    ]);
  }
  // A pooler may have names of its own for databases.
  const isDirect = urls.databaseDirectUrl !== undefined && urls.databaseDirectUrl !== urls.databaseUrl;
  const [used, owned] = [urls.databaseDirectUrl ?? urls.databaseUrl, urls.migrateDatabaseUrl].map(
    (url) => url && new URL(url).pathname.slice(1),
  );
  if (!used || !owned || used === owned) return;
  throw new EnvironmentError([
    `MIGRATE_DATABASE_URL names the database "${owned}", and ${isDirect ? 'DATABASE_DIRECT_URL' : 'DATABASE_URL'} "${used}": set both to the same database.`,
  ]);
}

/** The settings that `npm start` and the command line read before any service is known. */
export type LocalEnvironment = ReturnType<typeof loadLocalEnvironment>;

/** As loadEnvironment, for a machine where Baton can run its own services: DATABASE_URL may be missing. */
export function loadLocalEnvironment(source: EnvironmentSource = processEnvironment()) {
  const { masterKey, masterKeyFile, masterKeyCommand, ...local } = readSettings(LOCAL_GROUPS, source).local;
  assertSameDatabase(local);
  // If there is no master key, `npm start` makes one and keeps it.
  return { ...local, hasMasterKey: (masterKey ?? masterKeyFile ?? masterKeyCommand) !== undefined };
}
