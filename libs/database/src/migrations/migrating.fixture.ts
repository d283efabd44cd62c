import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { cpSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { buildSync } from 'esbuild';
import { Client } from 'pg';
import { asAdministrator, databaseUrl, dropDatabase } from '../../../../test/support/database.js';
import { migrationsFolder, projectFolder } from '../connection/migrations-folder.js';

/** What `npm run migrate` runs, as one file: a process that compiles TypeScript itself takes twice the CPU. */
const SCRIPT = join(tmpdir(), 'migrate.cjs');
/** Rows of the table `notes` that the first migration of every folder makes. */
export const ROWS = 1_000;
const folders: string[] = [];
const urls: string[] = [];
const clients: Client[] = [];

/** Packages that stay in node_modules: WebAssembly that is found by its path, and optional ones of Nest. */
const EXTERNAL = [
  '@prisma/schema-engine-wasm',
  'libpg-query',
  '@nestjs/microservices',
  '@nestjs/websockets',
  'class-transformer',
  'class-validator',
];

/** How to run it, with its arguments and in its environment. */
function program(url: string, args: readonly string[]) {
  if (!existsSync(SCRIPT)) {
    buildSync({
      entryPoints: [join(__dirname, '../migrate-main.ts')],
      outfile: SCRIPT,
      bundle: true,
      platform: 'node',
      external: EXTERNAL,
      // Only `require` looks into NODE_PATH.
      supported: { 'dynamic-import': false },
      // It finds the migrations from there.
      define: { __dirname: JSON.stringify(__dirname) },
      logLevel: 'error',
    });
  }
  const env = { ...process.env, DATABASE_URL: url, NODE_PATH: join(projectFolder(), 'node_modules') };
  return { args: [SCRIPT, ...args], env };
}

/** Removes what a test has made. */
export async function cleanUp(): Promise<void> {
  await Promise.all(clients.splice(0).map((client) => client.end()));
  for (const url of urls.splice(0)) await dropDatabase(url);
  for (const folder of folders.splice(0)) rmSync(folder, { recursive: true });
}

export async function emptyDatabase(): Promise<string> {
  const name = `test_${randomBytes(6).toString('hex')}`;
  await asAdministrator(`CREATE DATABASE ${name}`);
  urls.push(databaseUrl(name));
  return databaseUrl(name);
}

/** A folder of migrations: a table `notes` with rows, and then these. */
export function migrationsOf(migrations: Record<string, string>): string {
  const folder = mkdtempSync(join(tmpdir(), 'baton-migrations-'));
  folders.push(folder);
  cpSync(join(migrationsFolder(), 'migration_lock.toml'), join(folder, 'migration_lock.toml'));
  const first = `CREATE TABLE notes (id INTEGER PRIMARY KEY, text TEXT NOT NULL);
    INSERT INTO notes SELECT i, 'note ' || i FROM generate_series(1, ${ROWS}) i;`;
  for (const [name, sql] of Object.entries({ '0001_notes': first, ...migrations })) {
    mkdirSync(join(folder, name));
    writeFileSync(join(folder, name, 'migration.sql'), sql);
  }
  return folder;
}

/** What `npm run migrate` prints. Rejects with its exit code and stderr. */
export async function migrate(url: string, ...args: string[]): Promise<string> {
  const { args: all, env } = program(url, args);
  return (await promisify(execFile)(process.execPath, all, { env })).stdout.trim();
}

/** The same while it runs. */
export class Migrating {
  output = '';
  readonly exited: Promise<number | null>;
  private readonly child: ChildProcess;
  private look: () => void = () => undefined;

  constructor(url: string, ...args: string[]) {
    const { args: all, env } = program(url, args);
    this.child = spawn(process.execPath, all, { env, stdio: ['ignore', 'pipe', 'pipe'] });
    for (const stream of [this.child.stdout, this.child.stderr]) {
      stream?.setEncoding('utf8').on('data', (text: string) => {
        this.output += text;
        this.look();
      });
    }
    this.exited = new Promise((resolve) => this.child.once('close', (code) => resolve(code)));
  }

  /** Resolves when it has printed this; rejects if it ends without. */
  async printed(pattern: RegExp): Promise<void> {
    while (!pattern.test(this.output)) {
      const more = new Promise<'more'>((resolve) => (this.look = () => resolve('more')));
      const next = await Promise.race([more, this.exited]);
      if (next !== 'more' && !pattern.test(this.output)) {
        throw new Error(`It has ended without ${String(pattern)}:\n${this.output}`);
      }
    }
  }

  async kill(): Promise<void> {
    this.child.kill('SIGKILL');
    await this.exited;
  }
}

export async function connect(url: string): Promise<Client> {
  const client = new Client({ connectionString: url, application_name: 'somebody' });
  await client.connect();
  clients.push(client);
  return client;
}

export async function rowsOf<Row>(url: string, text: string): Promise<Row[]> {
  return (await (await connect(url)).query(text)).rows as Row[];
}

export const namesOf = (url: string) =>
  rowsOf<{ name: string; state: string }>(
    url,
    `SELECT migration_name AS name, CASE WHEN rolled_back_at IS NOT NULL THEN 'rolled back'
      WHEN finished_at IS NULL THEN 'unfinished' ELSE 'applied' END AS state
     FROM _prisma_migrations ORDER BY migration_name, started_at`,
  );
