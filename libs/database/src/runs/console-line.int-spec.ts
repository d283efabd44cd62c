import { randomUUID } from 'node:crypto';
import { type ConsoleLine, ConsoleLineStore } from '../index.js';
import { endTurn, openStores, sql, startTask, type Stores } from '../stores.fixture.js';

let stores: Stores;
let lines: ConsoleLineStore;
beforeAll(async () => {
  stores = await openStores();
  lines = new ConsoleLineStore(stores.database);
});
afterAll(async () => stores.close());

const AT = new Date('2026-01-31T12:00:00.123Z');
const line = (text: string, level: ConsoleLine['level'] = 'info'): ConsoleLine => ({ at: AT, level, text });
const all = { after: 0, limit: 2_000 };

describe('the console of a task', () => {
  it('is what its attempts have written, in their order, page by page', async () => {
    const run = await startTask(stores);
    const { tenantId, taskId, runId } = run;
    expect(await lines.append(run, [line('one'), line('nul \0, {"json"}, \ud800', 'error')])).toBe(false);
    await lines.append({ ...run, attempt: 7 }, [line('three', 'debug')]);
    const [one, two, ...rest] = await lines.read(tenantId, taskId, all);
    expect(one).toEqual({ position: 1, runId, attempt: run.attempt, at: AT, level: 'info', text: 'one' });
    expect(two).toMatchObject({ position: 2, level: 'error', text: 'nul \uFFFD, {"json"}, \uFFFD' });
    expect(rest).toMatchObject([{ position: 3, attempt: 7, level: 'debug', text: 'three' }]);
    expect(await lines.read(tenantId, taskId, { after: 1, limit: 1 })).toEqual([two]);
  });

  it('keeps the oldest 1,000 lines, and one line about the dropped rest', async () => {
    const run = await startTask(stores);
    const many = Array.from({ length: 999 }, (_, i) => line(String(i)));
    expect(await lines.append(run, many)).toBe(false);
    expect(await lines.append(run, [line('the last'), line('dropped'), line('dropped')])).toBe(true);
    expect(await lines.append(run, [line('dropped')])).toBe(true);
    const kept = await lines.read(run.tenantId, run.taskId, all);
    expect(kept).toHaveLength(1001);
    expect(kept.slice(999)).toMatchObject([
      { text: 'the last' },
      { level: 'warn', text: expect.stringMatching(/^Further lines were dropped/) as string },
    ]);
  });

  it('keeps 256 KiB', async () => {
    const run = await startTask(stores);
    expect(
      await lines.append(
        run,
        Array.from({ length: 64 }, () => line('é'.repeat(2048))),
      ),
    ).toBe(false);
    expect(await lines.append(run, [line('x')])).toBe(true);
    expect(await lines.append(run, [line('x')])).toBe(true);
    const kept = await lines.read(run.tenantId, run.taskId, all);
    expect(kept.map(({ text }) => text.slice(0, 7)).slice(63)).toEqual(['é'.repeat(7), 'Further']);
  });

  it('has no line twice and loses none when two attempts write at a time', async () => {
    const run = await startTask(stores);
    const attempts = [1, 2, 3, 4].map((attempt) => ({ ...run, attempt }));
    const waiting = `SELECT FROM pg_stat_activity WHERE datname = current_database() AND cardinality(pg_blocking_pids(pid)) > 0`;
    const { written } = await stores.database.inSystem(async (transaction) => {
      await transaction.query({ text: 'SELECT FROM tasks WHERE id = $1 FOR UPDATE' }, [run.taskId]);
      const appends = Promise.all(
        attempts.map((each) => lines.append(each, [line(`a ${each.attempt}`), line(`b ${each.attempt}`)])),
      );
      while ((await sql(stores, waiting)).length < attempts.length);
      return { written: appends };
    });
    await written;
    const kept = await lines.read(run.tenantId, run.taskId, all);
    expect(kept.map(({ position }) => position)).toEqual([1, 2, 3, 4, 5, 6, 7, 8]);
    expect(new Set(kept.map(({ text }) => text)).size).toBe(8);
  });

  it('belongs to one tenant, and no deleted task has one', async () => {
    const run = await startTask(stores);
    await lines.append(run, [line('mine')]);
    const other = randomUUID();
    expect(await lines.read(other, run.taskId, all)).toEqual([]);
    expect(await lines.append({ ...run, tenantId: other }, [line('theirs')])).toBe(true);
    expect(await lines.read(run.tenantId, 'no-uuid', all)).toEqual([]);
    expect(await lines.append({ ...run, taskId: randomUUID() }, [line('of a deleted task')])).toBe(true);
    expect(await lines.read(run.tenantId, run.taskId, all)).toMatchObject([{ text: 'mine' }]);
  });

  it('counts towards what its tenant stores, and takes lines after the end of the turn', async () => {
    const run = await startTask(stores);
    const bytes = async () =>
      (await sql(stores, `SELECT open_bytes::int AS n FROM tasks WHERE id = '${run.taskId}'`)) as {
        n: number;
      }[];
    const [{ n: before }] = (await bytes()) as [{ n: number }];
    await lines.append(run, [line('x'.repeat(1000))]);
    expect(await bytes()).toEqual([{ n: before + 1000 }]);
    await endTurn(stores, run, 2);
    const ended = await bytes();
    await lines.append(run, [line('late')]);
    expect(await bytes()).toEqual(ended);
    expect(await lines.read(run.tenantId, run.taskId, all)).toMatchObject([{}, { text: 'late' }]);
  });
});
