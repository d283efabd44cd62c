import { existsSync, readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { parse } from 'yaml';
import type { PostgresOptions } from '../../apps/local/src/services/index.js';

/** Where Debian's packages put each release of Postgres. */
const DEBIAN = '/usr/lib/postgresql';

/** Folder with the `bin` of the newest Postgres that Debian has installed. Unlike npm's, it compiles statements (JIT). */
export function debianPostgres(): string | undefined {
  const releases = existsSync(DEBIAN) ? readdirSync(DEBIAN).map(Number) : [];
  const folders = releases.sort((a, b) => b - a).map((release) => join(DEBIAN, String(release)));
  return folders.find((folder) => existsSync(join(folder, 'bin/postgres')));
}

/** The settings that docker-compose.yml gives Postgres. All others stay as Postgres comes. */
export function composeTuning(): Record<string, string> {
  const file = readFileSync(join(__dirname, '../../docker-compose.yml'), 'utf8');
  const { services } = parse(file, { merge: true }) as { services: { postgres: { command: string[] } } };
  const settings = services.postgres.command.map((argument) =>
    /^--(?<name>\w+)=(?<value>.*)$/.exec(argument),
  );
  return Object.fromEntries(settings.flatMap((found) => (found ? [[found[1], found[2]]] : [])));
}

/**
 * A Postgres as an operator has it: Debian's, where it is installed, with what docker-compose.yml sets. Figures, chaos and
 * faults are measured on it.
 * @param programs of another release
 */
export function stockPostgres(programs = debianPostgres()): PostgresOptions {
  return { tuning: composeTuning(), ...(programs !== undefined && { programs }) };
}
