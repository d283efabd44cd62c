import { closest, distance } from 'fastest-levenshtein';
import { loadEnvironment, loadLocalEnvironment } from './environment.js';
import type { EnvironmentSource } from './environment-source.js';
import { EnvironmentError } from './environment-error.js';
import { SECRET_FILE_NAMES, SETTING_NAMES } from './settings.js';

/** Prefixes of Baton's names. (`REDIS_`, `LOG_` or `MAX_` may belong to another program.) */
const OWN_PREFIX =
  /^(BATON|DELEGATION|HEADERS|IDEMPOTENCY|LEASE|LIMIT|OUTBOUND|RELAY|RETENTION|SSE|TOMBSTONE|WORKER)_/i;

/** Kubernetes and Docker links describe a service of the name `baton` or `worker` in variables like these. */
const SERVICE_LINK = /_SERVICE_(HOST|PORT(_.+)?)$|_PORT(_\d+_(TCP|UDP|SCTP).*)?$/i;

/** A short name is similar to too many others. */
const MIN_LENGTH = 7;
/** More differences make another word. */
const MAX_TYPOS = 2;

/** The check of an environment's settings. It contains no values. */
export interface SettingsReport {
  /** One sentence per key that is missing or wrong. */
  problems: readonly string[];
  /** One sentence per name that resembles a setting but is none. */
  unknown: readonly string[];
  /** Names of the keys that have a value. */
  set: readonly string[];
}

/**
 * One sentence per name in `source` that resembles a setting but is unknown, such as a misspelt setting. Values are never in it. An
 * environment has many names of other programs: only those count that begin like ours or are two letters or fewer away from one of
 * ours.
 */
export function unknownSettings(source: EnvironmentSource): string[] {
  const known = new Set([...SETTING_NAMES, ...SECRET_FILE_NAMES]);
  return Object.keys(source)
    .filter((name) => !known.has(name) && looksLikeOurs(name, source[name] ?? ''))
    .sort()
    .map(describe);
}

/** Checks all settings of `source` at once. DATABASE_URL may be missing: `npm start` and compose bring a Postgres. */
export function settingsReport(source: EnvironmentSource): SettingsReport {
  const databaseUrl = source.DATABASE_URL?.trim() || 'postgres://localhost/baton';
  const problems = [
    ...problemsOf(() => loadEnvironment({ ...source, DATABASE_URL: databaseUrl })),
    ...problemsOf(() => loadLocalEnvironment(source)),
  ];
  return {
    problems: [...new Set(problems)],
    unknown: unknownSettings(source),
    set: SETTING_NAMES.filter((name) => source[name]?.trim()).sort(),
  };
}

function looksLikeOurs(name: string, value: string): boolean {
  if (SERVICE_LINK.test(name) && (value.includes('://') || !/_PORT$/i.test(name))) return false;
  if (OWN_PREFIX.test(name)) return true;
  return name.length >= MIN_LENGTH && isNearSetting(name.toUpperCase());
}

/** Compares only names of about the same length: each process asks this for its whole environment when it starts. */
const isNearSetting = (name: string): boolean =>
  SETTING_NAMES.some(
    (setting) => Math.abs(setting.length - name.length) <= MAX_TYPOS && distance(name, setting) <= MAX_TYPOS,
  );

function describe(name: string): string {
  const candidate = nearest(name);
  // If a third of a name with our prefix is wrong, the setting is still clear.
  const isNear = typos(name, candidate) <= Math.max(MAX_TYPOS, Math.floor(name.length / 3));
  const shown = name.replaceAll(/[^\w.-]/g, '?').slice(0, 100);
  return isNear
    ? `${shown} is not a setting; did you mean ${candidate}?`
    : `${shown} is not a setting: .env.example lists all settings.`;
}

const nearest = (name: string): string => closest(name.toUpperCase(), SETTING_NAMES);

const typos = (name: string, setting: string): number => distance(name.toUpperCase(), setting);

function problemsOf(load: () => unknown): readonly string[] {
  try {
    load();
    return [];
  } catch (error) {
    if (error instanceof EnvironmentError) return error.problems;
    throw error;
  }
}
