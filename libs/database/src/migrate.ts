import { PrismaPg } from '@prisma/adapter-pg';
import { bindMigrationAwareSqlAdapterFactory } from '@prisma/driver-adapter-utils';
import type { MigrationList } from '@prisma/schema-engine-wasm';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { Client, Pool, type PoolConfig } from 'pg';
import { migrationNames, migrationsFolder } from './migrations-folder.js';
import { loadSchemaEngine } from './schema-engine.js';
import { plainError } from './transient.js';

/** Held while migrations are applied, so that of several processes one does and the others wait. */
const MIGRATION_LOCK = 4_712_083_001;

/**
 * Apply the pending migrations of `prisma/migrations`, as `prisma migrate deploy` does, but without the engine
 * that command downloads. Does nothing when there are none; safe to run in several processes at once.
 * @returns the names of the migrations applied
 */
export async function migrate(databaseUrl: string): Promise<string[]> {
  const lock = new Client({ connectionString: databaseUrl, application_name: 'baton-migrate' });
  lock.on('error', () => undefined);
  try {
    await lock.connect();
    await lock.query('SELECT pg_advisory_lock($1)', [MIGRATION_LOCK]);
    return await applyMigrations(databaseUrl);
  } catch (error) {
    throw plainError(error);
  } finally {
    await lock.end();
  }
}

async function applyMigrations(databaseUrl: string): Promise<string[]> {
  const adapters = new AtomicScripts({ connectionString: databaseUrl });
  const { SchemaEngine } = await loadSchemaEngine();
  const bound = bindMigrationAwareSqlAdapterFactory(adapters);
  const engine = await SchemaEngine.new({ datamodels: undefined }, () => undefined, bound);
  try {
    const { appliedMigrationNames } = await engine.applyMigrations({
      migrationsList: migrationList(),
      filters: { externalTables: [], externalEnums: [] },
    });
    return appliedMigrationNames;
  } catch (error) {
    throw adapters.failure ?? error;
  } finally {
    engine.free();
    await adapters.close();
  }
}

/**
 * Sends each migration as one script, which Postgres executes as one transaction: all of it or nothing. (The
 * adapter itself would cut it at every semicolon and commit piece by piece.)
 */
class AtomicScripts extends PrismaPg {
  failure: unknown;
  private readonly pool: Pool;

  constructor(config: PoolConfig) {
    const pool = new Pool(config);
    pool.on('error', () => undefined);
    super(pool);
    this.pool = pool;
  }

  override async connect(): ReturnType<PrismaPg['connect']> {
    const adapter = await super.connect();
    adapter.executeScript = async (script) => {
      await this.pool.query(script).catch((error: unknown) => {
        this.failure = error;
        throw error;
      });
    };
    return adapter;
  }

  async close(): Promise<void> {
    await this.pool.end();
  }
}

function migrationList(): MigrationList {
  const baseDir = migrationsFolder();
  const read = (...path: string[]): string => readFileSync(join(baseDir, ...path), 'utf8');
  return {
    baseDir,
    lockfile: { path: 'migration_lock.toml', content: read('migration_lock.toml') },
    shadowDbInitScript: '',
    migrationDirectories: migrationNames(baseDir).map((name) => ({
      path: name,
      migrationFile: {
        path: 'migration.sql',
        content: { tag: 'ok', value: read(name, 'migration.sql') },
      },
    })),
  };
}
