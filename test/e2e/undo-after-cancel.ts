import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Bank } from '../support/bank.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { driversOf, nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';
import { until } from '../support/until.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

interface Payment {
  name: string;
  path: string;
  how: 'repeat' | 'verify';
  back: string;
}

describe.each(driversOf('postgres'))('a canceled order with %s', (driver) => {
  const startStack = shareStack(driver, {
    ...CRASH_SETTINGS,
    MAX_ATTEMPTS: '20',
    BATON_AGENTS_DIR: join(__dirname, '../agents'),
  });
  let stack: Stack;
  let bank: Bank;
  let token: string;

  beforeAll(async () => {
    bank = await new Bank().start();
    stack = await startStack();
    ({ token } = await stack.createTenant());
  });
  afterAll(() => bank.stop());

  /** Payments of one test, which can all be paid back. */
  const payments = (test: string, how: Payment['how'], names = ['one', 'two', 'three']): Payment[] =>
    names.map((name) => ({ name, how, path: `/keyed/${test}-${name}`, back: `/keyed/${test}-back-${name}` }));

  /** The paths of the effects of a test, in their order. */
  const effectsOf = (test: string): string[] =>
    bank.effects.flatMap(({ path }) =>
      path.startsWith(`/keyed/${test}-`) ? [path.split(`${test}-`)[1]!] : [],
    );

  const caller = (): RawCaller => new RawCaller(stack.url(0, 'payer'), token);
  /** @returns the id of the order */
  async function order(listed: Payment[]): Promise<string> {
    const said = listed.map(({ path, back, ...more }) => ({
      ...more,
      url: bank.url(path),
      back: back && bank.url(back),
    }));
    const { result } = await caller().call('SendMessage', {
      ...sendParams(JSON.stringify({ payments: said })),
      configuration: { returnImmediately: true },
    });
    return result!.task.id as string;
  }

  const cancel = (id: string) => caller().call('CancelTask', { id });

  const read = (id: string): Promise<any> => stack.rest(token).task(id);

  /** The task that undoes the order, once it has ended. */
  async function undone(id: string, state = 'completed'): Promise<any> {
    for (;;) {
      const { undone_as: undo } = await read(id);
      const found = undo ? await read(undo as string) : undefined;
      if (found?.state === state) return found;
      await delay(50);
    }
  }

  const textOf = ({ task }: any): string => task.status.message.parts[0].text as string;

  it('is paid back by another task, the last payment first, and stays canceled itself', async () => {
    const listed = payments('plain', 'repeat');
    bank.held.add(listed[2]!.path);
    const id = await order(listed);
    await bank.reached(listed[2]!.path);
    const { result } = await cancel(id);
    expect(result).toMatchObject({ status: { state: 'TASK_STATE_CANCELED' } });
    const undo = await undone(id);
    expect(effectsOf('plain')).toEqual(['one', 'two', 'three', 'back-two', 'back-one']);
    expect(textOf(undo)).toBe('Undone: "two", "one". It is not known whether this was carried out: "three".');
    expect(undo).toMatchObject({ undoes: id, undone_as: null, context_id: (await read(id)).context_id });
    expect(undo.task.artifacts ?? []).toEqual([]);
    expect(await read(id)).toMatchObject({ state: 'canceled', undone_as: undo.task_id, undoes: null });
    const shown = await stack.baton('tasks', 'show', id, ...stack.cliOptions(token));
    expect(shown).toContain(undo.task_id);
    const trace = await stack.baton('tasks', 'trace', undo.task_id as string, ...stack.cliOptions(token));
    expect(trace).toContain(id);
  });

  nightlyIt('also pays back what was under way, if the code finds that it was paid', async () => {
    const listed = payments('verified', 'verify', ['one', 'two']);
    bank.held.add(listed[1]!.path);
    const id = await order(listed);
    await bank.reached(listed[1]!.path);
    await cancel(id);
    const undo = await undone(id);
    expect(effectsOf('verified')).toEqual(['one', 'two', 'back-two', 'back-one']);
    expect(textOf(undo)).toBe('Undone: "two", "one".');
  });

  nightlyIt('needs no other task if nothing was begun', async () => {
    const first = payments('first', 'repeat', ['one']);
    bank.refused.add(first[0]!.path);
    const id = await order(first.map(({ back: _, ...payment }) => ({ ...payment, back: '' })));
    await cancel(id);
    const other = payments('second', 'repeat', ['one', 'two']);
    bank.held.add(other[1]!.path);
    const second = await order(other);
    await bank.reached(other[1]!.path);
    await cancel(second);
    await undone(second);
    expect(await read(id)).toMatchObject({ state: 'canceled', undone_as: null });
  });

  nightlyIt('is paid back exactly once, wherever workers are killed', async () => {
    const listed = payments('killed', 'verify');
    const [one, , three] = listed;
    bank.held.add(three!.path);
    const id = await order(listed);
    await bank.reached(three!.path);
    // No worker can see to what the cancel leaves.
    await stack.killWorkers();
    await cancel(id);
    await stack.addWorker();
    for (const { back } of [three!, one!]) {
      bank.held.add(back);
      await bank.reached(back);
      await stack.killWorkers();
      bank.held.delete(back);
      await stack.addWorker();
    }
    const undo = await undone(id);
    expect(effectsOf('killed')).toEqual(['one', 'two', 'three', 'back-three', 'back-two', 'back-one']);
    const steps = undo.steps.filter(({ name }: any) => name.startsWith('compensate'));
    expect(steps.map(({ attempts }: any) => attempts)).toEqual([2, 1, 2]);
  });

  nightlyIt('goes on to be paid back when it is continued after a payment that could not be', async () => {
    const listed = payments('broken', 'verify', ['one', 'two']);
    const [one, two] = listed;
    bank.held.add(two!.path);
    bank.refused.add(two!.back);
    const id = await order(listed);
    await bank.reached(two!.path);
    await cancel(id);
    const failed = await undone(id, 'failed');
    expect(failed.error.message).toContain('HTTP 503');
    expect(effectsOf('broken')).toEqual(['one', 'two', 'back-one']);
    bank.refused.delete(two!.back);
    const shown = await stack.baton(
      'tasks',
      'continue',
      failed.task_id as string,
      ...stack.cliOptions(token),
    );
    const [, goesOn = ''] = /continues as task (\S+)\./.exec(shown) ?? [];
    await until(async () => (await read(goesOn)).state === 'completed');
    expect(effectsOf('broken')).toEqual(['one', 'two', 'back-one', 'back-two']);
    expect(bank.keysOf(one!.back).size).toBe(1);
  });

  nightlyIt('is paid back if it is canceled while it was being paid back after an error', async () => {
    const listed = payments('failing', 'repeat', ['one', 'two']);
    bank.held.add(listed[1]!.back);
    const broken = { name: 'three', how: 'repeat' as const, path: '/keyed/failing-three', back: '/none' };
    bank.refused.add(broken.path);
    const id = await order([...listed, broken]);
    await bank.reached(listed[1]!.back);
    await cancel(id);
    bank.held.delete(listed[1]!.back);
    await undone(id);
    expect(effectsOf('failing')).toEqual(['one', 'two', 'back-two', 'back-one']);
  });
});
