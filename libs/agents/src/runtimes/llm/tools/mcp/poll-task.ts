import { clock } from '@baton/telemetry';
import type { RemoteCall, RemoteTask } from '../remote-call.js';
import { McpFailure } from './mcp-failure.js';
import { isTransient, wasNotStarted } from './failure-checks.js';
import type { ModernConnection, RemoteTaskState } from './modern-connection.js';

/** Shortest pause between two polls of a task. It grows to a tenth of the age of the task. */
const MIN_PAUSE_MS = 500;
/** Longest pause for a server that does not ask for a longer one. */
const MAX_PAUSE_MS = 60_000;
/** Longest pause, also for a server that asks for a longer one. */
const MAX_INTERVAL_MS = 10 * 60_000;
/** Pause after a poll that has failed, in ms. */
const RETRY_MS = 30_000;
/** A server that is unreachable for longer has lost the task. */
const MAX_UNREACHABLE_MS = 60 * 60_000;
/** A task that works on after its time is given up this much later. */
const AFTER_TTL_MS = 60_000;
/** A task without a `ttl` is given up after this time. */
const MAX_TASK_MS = 30 * 24 * 60 * 60_000;
/** JSON-RPC code. For a task it means unknown or expired. */
const INVALID_PARAMS = -32602;

/**
 * Polls the task of a call. Rejects with an McpFailure if the task is gone or its server is lost.
 * @param store stores the call. It is called when the server becomes unreachable, or reachable again
 * @returns the state, and the pause before the next poll in ms; no state: the server is unreachable for now
 */
export async function pollTask(
  connection: ModernConnection,
  kept: RemoteCall,
  store: (kept: RemoteCall) => Promise<void>,
  signal: AbortSignal,
): Promise<{ state?: RemoteTaskState; waitMs: number }> {
  const { task, unreachableSince, ...others } = kept;
  if (!task) throw new Error('the call has no task');
  let state: RemoteTaskState;
  try {
    state = await connection.getTask(task.taskId, signal);
  } catch (error) {
    signal.throwIfAborted();
    if (error instanceof McpFailure && error.details.rpc?.code === INVALID_PARAMS)
      throw unknownTaskError(error);
    const mayPass = isTransient(error) || wasNotStarted(error) || isSilent(error);
    const since = unreachableSince === undefined ? clock.now() : Date.parse(unreachableSince);
    if (!mayPass || clock.now() - since > MAX_UNREACHABLE_MS) throw error;
    if (unreachableSince === undefined)
      await store({ ...kept, unreachableSince: new Date(since).toISOString() });
    return { waitMs: RETRY_MS };
  }
  if (unreachableSince !== undefined) await store({ ...others, task });
  const age = clock.now() - Date.parse(task.receivedAt);
  const pause = Math.min(Math.max(age / 10, MIN_PAUSE_MS), MAX_PAUSE_MS);
  const waitMs = Math.min(Math.max(state.pollIntervalMs, pause), MAX_INTERVAL_MS);
  if (state.status === 'failed')
    throw new McpFailure('error', 'its task has failed', {
      serverText: state.said ?? state.statusMessage ?? '',
    });
  if (state.status === 'cancelled')
    throw new McpFailure('error', 'its task was canceled there', { serverText: state.statusMessage ?? '' });
  if (state.status === 'working') assertInTime(task);
  return { state, waitMs };
}

const isSilent = (error: unknown): boolean => error instanceof McpFailure && error.kind === 'silent';

function unknownTaskError({ details }: McpFailure): McpFailure {
  const { serverText = '' } = details;
  return new McpFailure('error', 'it no longer knows the task of this call, so its result is not known', {
    serverText,
  });
}

/** Throws McpFailure if the time of the task is over: its `ttl`, or a month. */
export function assertInTime({ receivedAt, ttlMs }: RemoteTask): void {
  const forMs = Math.min(ttlMs ?? Infinity, MAX_TASK_MS);
  if (clock.now() < Date.parse(receivedAt) + forMs + AFTER_TTL_MS) return;
  throw new McpFailure('error', 'its task has not ended in its time, so its result is not known');
}
