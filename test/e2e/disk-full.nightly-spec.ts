import { randomBytes } from 'node:crypto';
import { join } from 'node:path';
import type { RunningPostgres } from '../../apps/local/src/services/index.js';
import { waitUntil } from '../../apps/local/src/services/service-process.js';
import { inspectDatabase } from '../../libs/database/src/index.js';
import { migrate } from '../../libs/database/src/migrations/migrate.js';
import { startTestPostgres } from '../support/postgres.js';
import { sendParams } from '../support/raw-caller.js';
import { SmallDisk } from '../support/small-disk.js';
import { Stack, type TestTenant } from '../support/stack.js';

/** Room for a new Postgres, its WAL, and a few MB of tasks. */
const DISK = '160m';
const MIB = 2 ** 20;
/** No call hangs: the clients of a slow machine included. */
const MAX_CALL_MS = 120_000;

const disk = SmallDisk.mount(DISK);

// Only root may mount a disk: the title says why the test is left out.
if (typeof disk === 'string')
  describe.skip(`a Postgres whose disk is full (no small disk here: ${disk})`, () => undefined);
else
  describe('a Postgres whose disk is full', () => {
    let postgres: RunningPostgres | undefined;
    let stack: Stack;
    let tenant: TestTenant;

    beforeAll(async () => {
      postgres = await startTestPostgres(join(disk.folder, 'postgres'), {
        tuning: {},
        settings: { shared_buffers: '16MB', min_wal_size: '32MB', max_wal_size: '48MB' },
      });
      await migrate(postgres.url);
      const database = { url: postgres.url, drop: async () => undefined };
      stack = await Stack.start({ driver: 'postgres', database, workers: 1 });
      tenant = await stack.createTenant();
    });

    afterAll(async () => {
      disk.free();
      await stack.stop();
    });
    afterAll(async () => {
      await postgres?.process.stop(10_000);
      disk.unmount();
    });

    /** @returns the HTTP status, and the id of an accepted task */
    const send = async (text: string): Promise<{ status: number; reason?: string; id?: string }> => {
      const answer = await fetch(`${stack.url(0)}/message:send`, {
        method: 'POST',
        headers: {
          authorization: `Bearer ${tenant.token}`,
          'content-type': 'application/a2a+json',
          'a2a-version': '1.0',
        },
        body: JSON.stringify({ ...sendParams(text), configuration: { returnImmediately: true } }),
        signal: AbortSignal.timeout(MAX_CALL_MS),
      });
      const { task, error } = (await answer.json()) as { task?: { id: string }; error?: { message: string } };
      return { status: answer.status, ...(error && { reason: error.message }), ...(task && { id: task.id }) };
    };

    const stateOf = async (id: string): Promise<string> =>
      (await stack.rest(tenant.token).task(id)).state as string;

    const management = async (path: string): Promise<string> =>
      (await fetch(`${stack.apis[0]?.managementUrl}${path}`)).text();

    it('is named on /readyz, in the log and as a metric; calls get 503, and all goes on when there is room', async () => {
      const accepted = [(await send('before')).id];
      disk.fill();
      const refused: { status: number; reason?: string }[] = [];
      const isRefused = async (): Promise<boolean> => {
        const answer = await send(randomBytes(MIB / 4).toString('hex'));
        if (answer.id !== undefined) accepted.push(answer.id);
        else refused.push(answer);
        return refused.length >= 3;
      };
      expect(await waitUntil(isRefused, Infinity)).toBe(true);
      const refusal = { status: 503, reason: expect.stringContaining('send the request again') as string };
      expect(refused).toEqual([refusal, refusal, refusal]);
      const isNamed = async (): Promise<boolean> => {
        await isRefused();
        return (await management('/readyz')).includes('postgres cannot write, because its disk is full');
      };
      expect(await waitUntil(isNamed, Infinity)).toBe(true);
      expect(await management('/metrics')).toContain('baton_database_disk_full 1');
      expect(stack.apis[0]?.log()).toContain('Postgres cannot write, because its disk is full');
      const isFound = async (): Promise<boolean> => {
        await isRefused();
        return (await inspectDatabase(postgres?.url ?? '', undefined)).isDiskFull;
      };
      expect(await waitUntil(isFound, Infinity)).toBe(true);

      disk.free();
      const isBack = async (): Promise<boolean> => {
        const { id } = await send('after');
        if (id !== undefined) accepted.push(id);
        return id !== undefined;
      };
      expect(await waitUntil(isBack, Infinity)).toBe(true);
      const areDone = async (): Promise<boolean> =>
        (await Promise.all(accepted.map((id) => stateOf(id ?? '')))).every((state) => state === 'completed');
      expect(await waitUntil(areDone, Infinity, 500)).toBe(true);
      const isQuiet = async (): Promise<boolean> =>
        !(await management('/readyz')).includes('disk is full') &&
        (await management('/metrics')).includes('baton_database_disk_full 0');
      expect(await waitUntil(isQuiet, Infinity, 500)).toBe(true);
      expect((await inspectDatabase(postgres?.url ?? '', undefined)).isDiskFull).toBe(false);
    });
  });
