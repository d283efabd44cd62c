import { existsSync, readFileSync } from 'node:fs';
import { resolve } from 'node:path';
import { isBatonSecret, SECRET_FILE_NAMES } from './settings.js';
import { EnvironmentError } from './environment-error.js';

/** The environment as Node has it, or any map of the same shape. */
export type EnvironmentSource = Record<string, string | undefined>;

/**
 * `process.env` with `.env` of the working folder, and secrets from their files. A variable that is already set wins over
 * `.env`. Throws EnvironmentError for a file that cannot be read.
 */
export function processEnvironment(): EnvironmentSource {
  if (existsSync('.env')) process.loadEnvFile('.env');
  return withSecretFiles(process.env);
}

/** With the secrets that are in files: `DATABASE_URL_FILE` names the one of `DATABASE_URL`, unless that has a value. */
export function withSecretFiles(source: EnvironmentSource): EnvironmentSource {
  const read: EnvironmentSource = {};
  const problems: string[] = [];
  for (const fileName of SECRET_FILE_NAMES) {
    const name = fileName.slice(0, -'_FILE'.length);
    const file = source[fileName]?.trim();
    if (!file || source[name]?.trim()) continue;
    try {
      read[name] = readFileSync(file, 'utf8').trim();
    } catch (error) {
      const reason = (error as NodeJS.ErrnoException).code ?? 'unknown reason';
      problems.push(`${fileName}: ${file} cannot be read (${reason}): name a file that this user can read.`);
    }
  }
  if (problems.length > 0) throw new EnvironmentError(problems);
  return { ...source, ...read };
}

/** Files in which a process finds secrets: `.env`, the folder of `npm start`, and those that `…_FILE` names. Absolute paths. */
export function secretFiles(): string[] {
  const named = [...SECRET_FILE_NAMES, 'BATON_MASTER_KEY_FILE'].flatMap(
    (name) => process.env[name]?.trim() || [],
  );
  return ['.env', process.env.BATON_HOME?.trim() || '.baton', ...named].map((path) => resolve(path));
}

/** The environment for a program of others, such as Redis: every program of a user can read that of the others. */
export function withoutSecrets(): EnvironmentSource {
  return Object.fromEntries(Object.entries(process.env).filter(([name]) => !isBatonSecret(name)));
}
