import { LargeWriteShares } from './large-write-shares.js';

/** Each write takes as long. */
const WRITE_MS = 100;
/** Writes without a pause. */
const BURST = 5;
/** Of the time of a write. */
const MAX_TIMES = 4;

let writes: LargeWriteShares;

beforeEach(() => {
  jest.useFakeTimers();
  writes = new LargeWriteShares();
});
afterEach(() => jest.useRealTimers());

const write = (): Promise<void> => new Promise((done) => setTimeout(done, WRITE_MS));

/** Large writes one after the other. @returns how long they took, in ms */
async function timeOf(
  count: number,
  tenantId = 'one',
  next = () => writes.runLargeWrite(tenantId, write),
): Promise<number> {
  const beganAt = performance.now();
  const all = (async () => {
    for (let i = 0; i < count; i++) {
      writes.noteWrite(tenantId);
      await next();
    }
    return performance.now() - beganAt;
  })();
  // Long enough for all pauses.
  await jest.advanceTimersByTimeAsync(MAX_TIMES * count * WRITE_MS);
  return all;
}

it('lets a tenant that is alone write without a pause', async () => {
  expect(await timeOf(40)).toBe(40 * WRITE_MS);
});

it('gives the large writes of a tenant a quarter of the time, after a burst, while another tenant writes', async () => {
  writes.noteWrite('two');
  const many = 20;
  const took = await timeOf(BURST + many);
  expect(took).toBeGreaterThanOrEqual((4 * many - 4) * WRITE_MS);
  expect(took).toBeLessThan((4 * many + BURST) * WRITE_MS);
});

it('lets a tenant write a burst without a pause while another tenant writes', async () => {
  writes.noteWrite('two');
  expect(await timeOf(BURST)).toBe(BURST * WRITE_MS);
});

it('holds up no other tenant with the pauses of one', async () => {
  writes.noteWrite('two');
  await timeOf(20);
  expect(await timeOf(1, 'two')).toBe(WRITE_MS);
});

it('lets a tenant write at once again soon after the others have stopped', async () => {
  writes.noteWrite('two');
  await timeOf(20);
  await jest.advanceTimersByTimeAsync(10_000);
  expect(await timeOf(40)).toBe(40 * WRITE_MS);
});

it('counts a write that waited for Postgres like one of a quarter of a second', async () => {
  writes.noteWrite('two');
  const slow = writes.runLargeWrite('one', () => new Promise((done) => setTimeout(done, 8_000)));
  await jest.advanceTimersByTimeAsync(8_000);
  await slow;
  writes.noteWrite('two');
  expect(await timeOf(2)).toBe(2 * WRITE_MS);
});

it('counts writes that fail', async () => {
  writes.noteWrite('two');
  const fail = () => write().then(() => Promise.reject(new Error('refused')));
  const took = await timeOf(20, 'one', () => writes.runLargeWrite('one', fail).catch(() => undefined));
  expect(took).toBeGreaterThan(2.5 * 20 * WRITE_MS);
});
