import { setImmediate } from 'node:timers/promises';
import { LoopTurns } from './loop-turns.js';

const LARGE = 1024 * 1024;
const BUSY_MS = 30;

let turns: LoopTurns;

beforeEach(() => (turns = new LoopTurns()));

/** Takes a turn, and then the whole event loop. @returns when it got it, in ms */
async function parse(holder: string, bytes = LARGE): Promise<number> {
  await turns.take(holder, bytes);
  const at = performance.now();
  while (performance.now() < at + BUSY_MS);
  return at;
}

it('lets a large body of a holder wait for the one before it, and small ones and others pass', async () => {
  const order: string[] = [];
  const note = (name: string, holder: string, bytes: number) =>
    turns.take(holder, bytes).then(() => order.push(name));
  await Promise.all([
    note('first', 'one', LARGE),
    note('second', 'one', LARGE),
    note('small', 'one', 1_000),
    note('of another', 'two', LARGE),
  ]);
  expect(order).toHaveLength(4);
  expect(order.at(-1)).toBe('second');
});

it('leaves most of the time to others while they send bodies', async () => {
  await turns.take('other', 10);
  const [first, second] = await Promise.all([parse('one'), parse('one')]);
  expect(second - first).toBeGreaterThanOrEqual(3 * BUSY_MS);
});

it('makes no pause for a holder that is alone', async () => {
  const first = parse('one');
  let isSecond = false;
  void parse('one').then(() => (isSecond = true));
  await first;
  for (let turn = 0; turn < 3; turn++) await setImmediate();
  expect(isSecond).toBe(true);
});
