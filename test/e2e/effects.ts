import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { Bank } from '../support/bank.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { NIGHTLY, nightlyDescribe } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';
import { until } from '../support/until.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

const startStack = shareStack('postgres', {
  ...CRASH_SETTINGS,
  MAX_ATTEMPTS: '20',
  BATON_AGENTS_DIR: join(__dirname, '../agents'),
});
let stack: Stack;
let bank: Bank;
let token: string;

interface Payment {
  name: string;
  path: string;
  how: 'repeat' | 'verify' | 'ask' | 'fail';
  back?: string;
}

const caller = () => new RawCaller(stack.url(0, 'payer'), token);

/** Sends an order without waiting for its end. @returns the id of the task */
async function order(payments: Payment[], fails = false): Promise<string> {
  const listed = payments.map(({ path, back, ...payment }) => ({
    ...payment,
    url: bank.url(path),
    ...(back && { back: bank.url(back) }),
  }));
  const params = sendParams(JSON.stringify({ payments: listed, fails }));
  const answer = await caller().call('SendMessage', {
    ...params,
    configuration: { returnImmediately: true },
  });
  return answer.result!.task.id as string;
}

const read = (id: string): Promise<any> => stack.rest(token).task(id);

/** The ledger of a task, or of all tasks. */
const ledger = (query: string): Promise<any> => stack.rest(token).get(`/v1/effects${query}`);

const effectsOf = async (id: string): Promise<any[]> => (await ledger(`?task=${id}`)).effects;
/** The task once it is in one of these states. */
async function reached(id: string, ...states: string[]): Promise<any> {
  for (;;) {
    const found = await read(id);
    if (states.includes(found.task.status.state.replace('TASK_STATE_', '').toLowerCase())) return found;
    await delay(30);
  }
}

const WAYS = [
  ['repeat', '/keyed/a', 'repeated'],
  ['verify', '/plain/b', 'verified'],
  ['ask', '/plain/c', 'asked'],
  ['fail', '/plain/d', 'failed'],
] as const;

describe('effects', () => {
  beforeAll(async () => {
    bank = await new Bank().start();
    stack = await startStack();
    ({ token } = await stack.createTenant());
  });
  afterAll(() => bank.stop());

  describe('a payment whose worker was killed after it was made, and before its answer', () => {
    // By day one way that confirms the payment, and the one that does not. `turn-steps.spec` has all ways.
    const ways = NIGHTLY ? WAYS : WAYS.filter(([how]) => how === 'ask' || how === 'fail');
    it.each(ways)('is made once with %s at %s, and its outcome was %s', async (how, path, decision) => {
      bank.held.add(path);
      const id = await order([{ name: 'pay', path, how }]);
      await bank.reached(path);
      const key = [...bank.keysOf(path)][0];
      expect(await effectsOf(id)).toMatchObject([{ name: 'pay', kind: 'step', outcome: 'sent', key }]);
      await stack.killWorkers();
      expect(await effectsOf(id)).toMatchObject([{ name: 'pay', outcome: 'unknown', key, attempts: 1 }]);
      expect((await ledger('?outcome=unknown&limit=1')).effects).toMatchObject([{ task_id: id }]);
      bank.held.delete(path);
      await stack.addWorker();
      if (how === 'ask') {
        const asked = await reached(id, 'input_required');
        const [{ text }, { data }] = asked.task.status.message.parts;
        expect(text).toContain('not known whether the step "pay" was carried out');
        expect(data.unknownOutcome).toEqual({ step: 'pay', key: [...bank.keysOf(path)][0] });
        await caller().call('SendMessage', sendParams('yes', { taskId: id }));
      }
      const ended = await reached(id, 'completed', 'failed');
      expect(ended.state).toBe(how === 'fail' ? 'failed' : 'completed');
      expect(bank.countOf(path)).toBe(1);
      expect(ended.steps).toMatchObject([{ name: 'pay', unknown_outcome: decision }]);
      const shown = await stack.baton('tasks', 'trace', id, '--url', stack.apis[0]!.url, '--token', token);
      const outcome = how === 'fail' ? 'unknown' : 'confirmed';
      expect(await effectsOf(id)).toMatchObject([{ name: 'pay', outcome, key, unknown_outcome: decision }]);
      const listed = await stack.baton('tasks', 'effects', '--outcome', outcome, ...stack.cliOptions(token));
      expect(listed).toMatch(
        new RegExp(`^${id} +pay +step +${outcome} \\(was unknown: ${decision}\\) .*${key}`, 'm'),
      );
      if (how !== 'fail') expect(shown).toContain(`outcome was unknown: ${decision}`);
    });
  });

  nightlyDescribe('many payments while workers are killed', () => {
    it('have exactly one effect where keys or verify protect them, and a recorded decision everywhere else', async () => {
      const payments = (task: number): Payment[] =>
        (['repeat', 'verify', 'repeat', 'verify', 'repeat', 'verify'] as const).map((how, i) => ({
          name: `pay ${i}`,
          // Number 4 has neither: only the journal shows that a payment may have been made twice.
          path:
            i === 4
              ? `/plain/${task}-${i}`
              : how === 'repeat'
                ? `/keyed/${task}-${i}`
                : `/plain/${task}-${i}`,
          how,
        }));
      const orders = Array.from({ length: 12 }, (_, task) => payments(task));
      const ids = await Promise.all(orders.map((listed) => order(listed)));
      // Each kill comes after further effects, so that it meets payments under way.
      for (let kills = 0; kills < 6; kills++) {
        const seen = bank.effects.length;
        const isOver = async () =>
          (await Promise.all(ids.map(read))).every(({ state }) => state === 'completed');
        await until(async () => bank.effects.length >= seen + 5 || (await isOver()));
        await stack.replaceWorkers();
      }
      const ended = await Promise.all(ids.map((id) => reached(id, 'completed')));
      for (const [task, { steps }] of ended.entries()) {
        for (const [i, { path, how }] of orders[task]!.entries()) {
          const isProtected = how === 'verify' || path.startsWith('/keyed/');
          const count = bank.countOf(path);
          expect([path, bank.keysOf(path).size]).toEqual([path, 1]);
          if (isProtected) expect([path, count]).toEqual([path, 1]);
          else if (count !== 1) expect(steps[i]).toMatchObject({ unknown_outcome: 'repeated' });
        }
      }
    });
  });

  // By day `turn-steps.spec` lets the process die after each entry of the journal.
  nightlyDescribe('an order that fails', () => {
    it('pays everything back once, the last payment first, although the worker is killed in between', async () => {
      const payments: Payment[] = ['one', 'two', 'three'].map((name) => ({
        name,
        path: `/keyed/order-${name}`,
        how: 'repeat',
        back: `/keyed/back-${name}`,
      }));
      bank.held.add('/keyed/back-two');
      const id = await order(payments, true);
      await bank.reached('/keyed/back-two');
      await stack.killWorkers();
      bank.held.delete('/keyed/back-two');
      await stack.addWorker();
      const { steps } = await reached(id, 'failed');
      const backs = bank.effects
        .filter(({ path }) => path.startsWith('/keyed/back-'))
        .map(({ path }) => path);
      expect(backs).toEqual(['/keyed/back-three', '/keyed/back-two', '/keyed/back-one']);
      expect(steps.map(({ name, state }: any) => [name, state])).toEqual([
        ['one', 'succeeded'],
        ['two', 'succeeded'],
        ['three', 'succeeded'],
        ['compensate three', 'succeeded'],
        ['compensate two', 'succeeded'],
        ['compensate one', 'succeeded'],
      ]);
      expect(steps[4]).toMatchObject({ attempts: 2, unknown_outcome: 'repeated' });
    });
  });
});
