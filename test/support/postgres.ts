import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { startPostgres } from '../../apps/local/src/services/index.js';
import type { TestDatabase } from './database.js';

const MIGRATE = join(__dirname, '../../dist/libs/database/src/migrate-main.js');

/** A Postgres for one test alone, which it may stop and bring back; durable, as that of an operator. */
export interface PrivatePostgres extends TestDatabase {
  /** Ends it; every connection breaks. */
  stop(): Promise<void>;
  /** Starts it again under the same URL. */
  restart(): Promise<void>;
}

export async function startPrivatePostgres(): Promise<PrivatePostgres> {
  const folder = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  chmodSync(folder, 0o711);
  const settings = { shared_buffers: '64MB' };
  let running = await startPostgres(folder, { settings });
  const { url } = running;
  await promisify(execFile)(process.execPath, [MIGRATE], { env: { ...process.env, DATABASE_URL: url } });
  return {
    url,
    stop: () => running.process.stop(5000),
    restart: async () => {
      running = await startPostgres(folder, { settings, at: url });
    },
    drop: async () => {
      await running.process.stop(5000);
      rmSync(folder, { recursive: true, force: true });
    },
  };
}
