import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Client } from 'pg';
import type { RunningPostgres } from '../../apps/local/src/services/index.js';
import { dropDatabase } from './database.js';
import { startTestPostgres } from './postgres.js';

// Autovacuum comes at once and takes as long as it can.
const BUSY_AUTOVACUUM = {
  shared_buffers: '16MB',
  autovacuum_naptime: '1s',
  autovacuum_vacuum_threshold: '1',
  autovacuum_vacuum_cost_delay: '100ms',
  autovacuum_vacuum_cost_limit: '1',
};

describe('the database of a test', () => {
  const folder = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  let postgres: RunningPostgres;
  beforeAll(async () => {
    chmodSync(folder, 0o711);
    postgres = await startTestPostgres(folder, { settings: BUSY_AUTOVACUUM, roleAttributes: 'CREATEDB' });
  });
  afterAll(async () => {
    await postgres.process.stop(5000);
    rmSync(folder, { recursive: true, force: true });
  });

  it('is removed while autovacuum and others are in it', async () => {
    const name = `test_${randomBytes(6).toString('hex')}`;
    const url = postgres.url.replace(/baton$/, name);
    const administrator = await connect(postgres.url);
    await administrator.query(`CREATE DATABASE ${name}`);
    const user = await connect(url);
    await user.query('CREATE TABLE dead AS SELECT generate_series(1, 200000) AS number');
    await user.query('DELETE FROM dead');
    const vacuums = 'SELECT 1 FROM pg_stat_progress_vacuum WHERE datname = $1';
    while ((await administrator.query(vacuums, [name])).rowCount === 0) {
      await new Promise((resolve) => setTimeout(resolve, 100));
    }

    await dropDatabase(url);

    const left = await administrator.query('SELECT 1 FROM pg_database WHERE datname = $1', [name]);
    expect(left.rowCount).toBe(0);
    await administrator.end();
  });
});

async function connect(connectionString: string): Promise<Client> {
  const client = new Client({ connectionString });
  client.on('error', () => undefined); // The database goes while it is connected.
  await client.connect();
  return client;
}
