import { McpFailure } from './mcp-failure.js';
import type { ModernConnection, RemoteTaskState } from './modern-connection.js';
import { pollTask } from './poll-task.js';
import type { RemoteCall } from '../remote-call.js';

const SECOND_MS = 1_000;
const MINUTE_MS = 60 * SECOND_MS;
const HOUR_MS = 60 * MINUTE_MS;

const ago = (ms: number): string => new Date(Date.now() - ms).toISOString();

/** A call whose task the server has begun so long ago. */
const callOf = (ageMs: number, more: Partial<RemoteCall> = {}): RemoteCall => ({
  server: 'desk',
  url: 'https://desk.example/mcp',
  tool: 'report',
  rounds: 0,
  task: { taskId: 'task', receivedAt: ago(ageMs), ttlMs: null, pollIntervalMs: 0 },
  ...more,
});

const state = (pollIntervalMs: number): RemoteTaskState => ({
  status: 'working',
  pollIntervalMs,
  result: undefined,
  inputRequests: undefined,
});

/** Polls a server with this answer. @returns the result, and the calls that were stored */
async function poll(kept: RemoteCall, answer: RemoteTaskState | Error) {
  const stored: RemoteCall[] = [];
  const getTask = () => (answer instanceof Error ? Promise.reject(answer) : Promise.resolve(answer));
  const result = await pollTask(
    { getTask } as unknown as ModernConnection,
    kept,
    async (call) => void stored.push(call),
    new AbortController().signal,
  );
  return { ...result, stored };
}

describe('the pause before the next poll of a task', () => {
  it.each([
    ['half a second for a new task', 0, 0, 500],
    ['a tenth of its age', 100 * SECOND_MS, 0, 10 * SECOND_MS],
    ['a minute for an old task', 24 * HOUR_MS, 0, MINUTE_MS],
    ['the interval of the server, if that is longer', 24 * HOUR_MS, 5 * MINUTE_MS, 5 * MINUTE_MS],
    ['ten minutes at most', 24 * HOUR_MS, HOUR_MS, 10 * MINUTE_MS],
  ])('is %s', async (_, ageMs, intervalMs, waitMs) => {
    const result = await poll(callOf(ageMs), state(intervalMs));
    // The age grows while the test runs.
    expect(result.waitMs).toBeGreaterThanOrEqual(waitMs);
    expect(result.waitMs).toBeLessThan(waitMs + SECOND_MS);
  });
});

describe('a server that cannot be reached', () => {
  const silence = new McpFailure('silent', 'it gives no answer in time');

  it('is polled again after 30 seconds, and the call reports the silence once, with its beginning', async () => {
    const first = await poll(callOf(0), silence);
    expect(first.waitMs).toBe(30 * SECOND_MS);
    expect(first).not.toHaveProperty('state');
    const since = first.stored[0]?.unreachableSince;
    expect(Date.parse(since ?? '')).toBeGreaterThan(Date.now() - MINUTE_MS);
    const second = await poll(callOf(0, { unreachableSince: since! }), silence);
    expect(second).toMatchObject({ waitMs: 30 * SECOND_MS, stored: [] });
  });

  it('has lost the task after an hour', async () => {
    await expect(poll(callOf(0, { unreachableSince: ago(59 * MINUTE_MS) }), silence)).resolves.toBeDefined();
    await expect(poll(callOf(0, { unreachableSince: ago(61 * MINUTE_MS) }), silence)).rejects.toBe(silence);
  });

  it('that is back begins a new hour', async () => {
    const { stored } = await poll(callOf(0, { unreachableSince: ago(59 * MINUTE_MS) }), state(0));
    expect(stored).toHaveLength(1);
    expect(stored[0]).not.toHaveProperty('unreachableSince');
  });

  it('that refuses has not lost its connection: the call fails at once', async () => {
    const refusal = new McpFailure('refused', 'it answered HTTP 403', { status: 403 });
    await expect(poll(callOf(0), refusal)).rejects.toBe(refusal);
  });
});
