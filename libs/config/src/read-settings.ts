import { existsSync } from 'node:fs';
import type { z } from 'zod';
import { SECRET_KEYS } from './settings.js';

/** The environment as Node has it, or any map of the same shape. */
export type EnvironmentSource = Record<string, string | undefined>;

/** Some keys of the environment are missing or wrong. The message is meant to be shown as it is. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';

  /** @param problems one plain sentence per bad key, with the remedy */
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}

/** `process.env`, after `.env` of the working folder was read into it (a key already set wins). */
export function processEnvironment(): EnvironmentSource {
  if (existsSync('.env')) process.loadEnvFile('.env');
  return process.env;
}

/** Checks the keys of `schema` in `source`. Throws EnvironmentError that names every bad key at once. */
export function readSettings<S extends z.ZodObject>(schema: S, source: EnvironmentSource): z.output<S> {
  const result = schema.safeParse(withoutEmpty(schema, source));
  if (result.success) return result.data;
  const problems = result.error.issues.map((issue) => {
    const key = String(issue.path[0]);
    return describe(key, source[key], issue.message);
  });
  throw new EnvironmentError([...new Set(problems)]);
}

/** An empty value counts as not set: compose files pass `KEY=` for a key nobody has given. */
function withoutEmpty(schema: z.ZodObject, source: EnvironmentSource): EnvironmentSource {
  const values = Object.keys(schema.shape).map((key) => [key, source[key]?.trim() || undefined]);
  return Object.fromEntries(values) as EnvironmentSource;
}

function describe(key: string, value: string | undefined, remedy: string): string {
  if (!value?.trim()) return `${key} is not set: ${remedy}.`;
  if (SECRET_KEYS.has(key)) return `${key} is not valid: ${remedy}.`;
  return `${key} is ${JSON.stringify(value)}: ${remedy}.`;
}
