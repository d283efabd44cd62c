import { execFile } from 'node:child_process';
import { chmodSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { RunningPostgres } from '../../apps/local/src/services/index.js';
import { startProcess } from '../support/baton-process.js';
import { NIGHTLY } from '../support/nightly.js';
import { startTestPostgres } from '../support/postgres.js';

const MIGRATE = join(__dirname, '../../dist/libs/database/src/migrate-main.js');

/** By day one: both are read by the same statement. */
const ATTRIBUTES = NIGHTLY ? ['SUPERUSER', 'BYPASSRLS'] : ['SUPERUSER'];

describe.each(ATTRIBUTES)('a role with %s', (attribute) => {
  let folder: string;
  let postgres: RunningPostgres;

  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'baton-role-'));
    chmodSync(folder, 0o711);
    postgres = await startTestPostgres(join(folder, 'postgres'), {
      settings: { fsync: 'off', shared_buffers: '32MB' },
      roleAttributes: attribute,
    });
    const env = { ...process.env, DATABASE_URL: postgres.url };
    await promisify(execFile)(process.execPath, [MIGRATE], { env });
  });

  afterAll(async () => {
    await postgres.process.stop(5_000);
    rmSync(folder, { recursive: true, force: true });
  });

  it('is refused by API and worker, with the remedy', async () => {
    for (const [kind, name] of [
      ['api', 'API'],
      ['worker', 'worker'],
    ] as const) {
      await expect(startProcess(kind, { DATABASE_URL: postgres.url })).rejects.toThrow(
        `The ${kind} process ended:\nThe ${name} could not start: The role "baton" of DATABASE_URL bypasses ` +
          'row-level security, so the database does not isolate tenants: use a role that is not a superuser and has ' +
          'no BYPASSRLS (docs/operating/security.md shows how to create one), or set ALLOW_RLS_BYPASS=true to run ' +
          'without this protection.\n',
      );
    }
  });

  it('is taken where the operator asks for it, with a warning in the log', async () => {
    const api = await startProcess('api', { DATABASE_URL: postgres.url, ALLOW_RLS_BYPASS: 'true' });
    expect((await fetch(`${api.url}/readyz`)).status).toBe(200);
    expect(await api.stop()).toBe(0);
    expect(api.log()).toContain('ALLOW_RLS_BYPASS is set');
  });
});
