import { execFileSync, spawnSync } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdtempSync, rmSync, statfsSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { RunningPostgres } from '../../apps/local/src/services/index.js';
import { waitUntil } from '../../apps/local/src/services/service-process.js';
import { migrate } from '../../libs/database/src/migrations/migrate.js';
import { startTestPostgres } from '../support/postgres.js';
import { sendParams } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';

/** Room for a new Postgres, its log of writes, and a few MB of tasks. */
const DISK = '160m';
const MIB = 2 ** 20;
/** No call hangs: the clients of a slow machine included. */
const MAX_CALL_MS = 20_000;
const RECOVERY_MS = 30_000;

const disk = mkdtempSync(join(tmpdir(), 'baton-disk-'));
chmodSync(disk, 0o711);
/** Only root may mount a small disk. */
const canMount =
  spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${DISK},mode=0711`, 'tmpfs', disk]).status === 0;

(canMount ? describe : describe.skip)('a Postgres whose disk is full', () => {
  let postgres: RunningPostgres;
  let stack: Stack;
  let tenant: TestTenant;
  const filler = join(disk, 'filler');

  beforeAll(async () => {
    postgres = await startTestPostgres(join(disk, 'postgres'), {
      tuning: {},
      settings: { shared_buffers: '16MB', min_wal_size: '32MB', max_wal_size: '48MB' },
    });
    await migrate(postgres.url);
    const database = { url: postgres.url, drop: async () => undefined };
    stack = await Stack.start({ driver: 'postgres', database, workers: 1 });
    tenant = await stack.createTenant();
  });

  afterAll(async () => {
    rmSync(filler, { force: true });
    await stack.stop();
    await postgres.process.stop(10_000);
    execFileSync('umount', ['-l', disk]);
    rmSync(disk, { recursive: true, force: true });
  });

  const fill = (): void => {
    const { bavail, bsize } = statfsSync(disk);
    writeFileSync(filler, Buffer.alloc(bavail * bsize));
  };

  /** @returns the HTTP status, and the id of an accepted task */
  const send = async (text: string): Promise<{ status: number; reason?: string; id?: string }> => {
    const answer = await fetch(stack.url(0), {
      method: 'POST',
      headers: {
        authorization: `Bearer ${tenant.token}`,
        'content-type': 'application/json',
        'a2a-version': '1.0',
      },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method: 'SendMessage',
        params: { ...sendParams(text), configuration: { returnImmediately: true } },
      }),
      signal: AbortSignal.timeout(MAX_CALL_MS),
    });
    const { result, error } = (await answer.json()) as {
      result?: { task: { id: string } };
      error?: { message: string };
    };
    return {
      status: answer.status,
      ...(error && { reason: error.message }),
      ...(result && { id: result.task.id }),
    };
  };

  const stateOf = async (id: string): Promise<string> => {
    const answer = await fetch(`${stack.apis[0]?.url}/v1/requests/${id}`, {
      headers: { authorization: `Bearer ${tenant.token}` },
    });
    return ((await answer.json()) as { state: string }).state;
  };

  const management = async (path: string): Promise<string> =>
    (await fetch(`${stack.apis[0]?.managementUrl}${path}`)).text();

  it('is named on /readyz, in the log and as a metric; calls get 503, and all goes on when there is room', async () => {
    const accepted = [(await send('before')).id];
    fill();
    const refused: { status: number; reason?: string }[] = [];
    const isRefused = async (): Promise<boolean> => {
      const answer = await send(randomBytes(MIB / 4).toString('hex'));
      if (answer.id !== undefined) accepted.push(answer.id);
      else refused.push(answer);
      return refused.length >= 3;
    };
    expect(await waitUntil(isRefused, 120_000)).toBe(true);
    expect(refused.map(({ status }) => status)).toEqual([503, 503, 503]);
    const isNamed = async (): Promise<boolean> => {
      await isRefused();
      return (await management('/readyz')).includes('postgres cannot write, because its disk is full');
    };
    expect(await waitUntil(isNamed, RECOVERY_MS)).toBe(true);
    expect(await management('/metrics')).toContain('baton_database_disk_full 1');
    expect(stack.apis[0]?.log()).toContain('Postgres cannot write, because its disk is full');

    rmSync(filler);
    const begin = performance.now();
    const isBack = async (): Promise<boolean> => {
      const { id } = await send('after');
      if (id !== undefined) accepted.push(id);
      return id !== undefined;
    };
    expect(await waitUntil(isBack, RECOVERY_MS)).toBe(true);
    const areDone = async (): Promise<boolean> =>
      (await Promise.all(accepted.map((id) => stateOf(id ?? '')))).every((state) => state === 'completed');
    expect(await waitUntil(areDone, 60_000, 500)).toBe(true);
    const isQuiet = async (): Promise<boolean> =>
      !(await management('/readyz')).includes('disk is full') &&
      (await management('/metrics')).includes('baton_database_disk_full 0');
    expect(await waitUntil(isQuiet, 60_000, 500)).toBe(true);
    expect(performance.now() - begin).toBeLessThan(150_000);
  });
});
