import { Logger, Metrics } from '@baton/telemetry';
import { KeptPrograms, type ProgramUse } from './kept-programs.js';

/** A program without a process. */
class FakeProgram {
  answers = true;
  isOfUse = true;
  isClosed = false;
  /** What `close` waits for. */
  closing: Promise<unknown> = Promise.resolve();

  constructor(readonly onEnd: () => void) {}

  responds(): Promise<boolean> {
    return Promise.resolve(this.answers);
  }

  tidy(): Promise<boolean> {
    return Promise.resolve(this.isOfUse);
  }

  async close(): Promise<void> {
    await this.closing;
    this.isClosed = true;
  }
}

const MINUTE = 60_000;
let metrics: Metrics;
let programs: KeptPrograms<FakeProgram>;

beforeEach(() => {
  jest.useFakeTimers();
  metrics = new Metrics();
  programs = new KeptPrograms({ max: 3, maxPerTenant: 2 }, Logger.silent(), metrics);
});
afterEach(() => jest.useRealTimers());

const take = (key: string, tenantId = 'acme'): Promise<ProgramUse<FakeProgram> | undefined> =>
  programs.take(
    { tenantId, key: `${tenantId} ${key}`, keepMs: MINUTE, server: 'browser' },
    (onEnd) => new FakeProgram(onEnd),
  );

async function taken(key: string, tenantId?: string): Promise<ProgramUse<FakeProgram>> {
  const use = await take(key, tenantId);
  if (!use) throw new Error(`no program for ${key}`);
  return use;
}

/** A turn of the context. @returns its program */
async function turn(key: string, tenantId?: string): Promise<FakeProgram> {
  const use = await taken(key, tenantId);
  await use.release();
  return use.program;
}

async function shown(name: string): Promise<Record<string, number>> {
  const metric = (await metrics.read()).find((each) => each.name === name);
  return Object.fromEntries(
    (metric?.values ?? []).map(({ labels, value }) => [Object.values(labels)[0], value]),
  );
}

describe('a kept program', () => {
  it('is that of the next turn of its context, and of no other', async () => {
    const first = await turn('one');
    const again = await taken('one');
    expect([again.program, again.isNew]).toEqual([first, false]);
    await again.release();
    expect(await turn('two')).not.toBe(first);
    expect(await turn('one', 'other')).not.toBe(first);
  });

  it('serves one turn at a time', async () => {
    const use = await taken('one');
    expect(await take('one')).toBeUndefined();
    await use.release();
    expect((await taken('one')).program).toBe(use.program);
  });

  it('ends when no turn has come in time, and not during a turn', async () => {
    const program = await turn('one');
    await jest.advanceTimersByTimeAsync(MINUTE - 1);
    const use = await taken('one');
    expect(use.isNew).toBe(false);
    await jest.advanceTimersByTimeAsync(2 * MINUTE);
    expect(program.isClosed).toBe(false);
    await use.release();
    await jest.advanceTimersByTimeAsync(MINUTE);
    expect(program.isClosed).toBe(true);
    expect((await taken('one')).isNew).toBe(true);
    expect(await shown('baton_kept_programs_ended_total')).toEqual({ idle: 1 });
  });

  it('makes room as the one of its tenant that has waited longest, if the tenant has all that it may', async () => {
    const other = await turn('one', 'other');
    const [first, second] = [await turn('one'), await turn('two')];
    await turn('one');
    const third = await turn('three');
    expect([first, second, third, other].map(({ isClosed }) => isClosed)).toEqual([
      false,
      true,
      false,
      false,
    ]);
    expect(await shown('baton_kept_programs_ended_total')).toEqual({ room: 1 });
  });

  it('makes room for another tenant, if the worker has all that it may', async () => {
    const oldest = await turn('one');
    await turn('two');
    await turn('one', 'second');
    const latest = await turn('one', 'third');
    expect([oldest, latest].map(({ isClosed }) => isClosed)).toEqual([true, false]);
    expect(await shown('baton_kept_programs')).toEqual({ used: 0, idle: 3 });
  });

  it('never makes room during a turn: there is none for the next context', async () => {
    const uses = [await taken('one'), await taken('two')];
    expect(await take('three')).toBeUndefined();
    expect(await shown('baton_limit_exceeded_total')).toEqual({ keptPrograms: 1 });
    expect(await shown('baton_kept_programs')).toEqual({ used: 2, idle: 0 });
    await uses[0]?.release();
    expect(await take('three')).toBeDefined();
  });

  it('has ended before the one that takes its room starts', async () => {
    const program = await turn('one');
    await turn('two');
    let end: (value?: unknown) => void = () => undefined;
    program.closing = new Promise((resolve) => (end = resolve));
    let hasStarted = false;
    const starting = taken('three').then(() => (hasStarted = true));
    await jest.advanceTimersByTimeAsync(10);
    expect(hasStarted).toBe(false);
    end();
    await starting;
  });

  it('is replaced if it does not answer, or was of no use at the end of its turn', async () => {
    const silent = await turn('one');
    silent.answers = false;
    const use = await taken('one');
    expect([use.isNew, silent.isClosed]).toEqual([true, true]);
    use.program.isOfUse = false;
    await use.release();
    expect(use.program.isClosed).toBe(true);
    expect((await taken('one')).isNew).toBe(true);
    expect(await shown('baton_kept_programs_ended_total')).toEqual({ lost: 2 });
  });

  it('gives its room back when it ends by itself between two turns', async () => {
    const program = await turn('one');
    program.onEnd();
    expect(await shown('baton_kept_programs')).toEqual({ used: 0, idle: 0 });
    expect((await taken('one')).isNew).toBe(true);
  });

  it('ends with the worker, also after the last turn', async () => {
    const idle = await turn('one');
    const use = await taken('two');
    await programs.close();
    await use.release();
    expect([idle, use.program].map(({ isClosed }) => isClosed)).toEqual([true, true]);
    expect(await take('one')).toBeUndefined();
  });
});

it('keeps nothing where the operator has set 0', async () => {
  programs = new KeptPrograms({ max: 0, maxPerTenant: 2 }, Logger.silent(), metrics);
  expect(await take('one')).toBeUndefined();
});
