import { TaskState } from '@baton/a2a';
import { setTimeout as delay } from 'node:timers/promises';
import { isLost } from '../server.js';
import { type AgentClient, type NumberedEvent, type Payload, stateIn } from './agent-client.js';

/** Maximum number of tries in a row to reconnect. */
const TRIES = 10;
/** A server that restarts is back within seconds: ten tries take five. */
const PAUSE_MS = 500;

export interface Following {
  client: Pick<AgentClient, 'subscribe' | 'stateOf'>;
  /** Whether a task in this state is followed no longer. */
  isOver: (state: TaskState) => boolean;
  /** Called when the connection is lost, not for each try to reconnect. */
  onLost?: () => void;
  pauseMs?: number;
}

/**
 * The events of a stream, and of the streams that continue after it when it is lost or the server closes it: each
 * event once and in order, until the task is over. Rejects when the server stays away.
 *
 * @param events the first stream
 * @param from where it began, if it is the stream of a task that is known already
 */
export async function* follow(
  events: AsyncIterable<NumberedEvent>,
  { client, isOver, onLost, pauseMs = PAUSE_MS }: Following,
  from?: { taskId: string; after: number },
): AsyncGenerator<NumberedEvent> {
  let cursor = from;
  let failures = 0;
  let isLast = false;
  for (;;) {
    try {
      for await (const event of events) {
        failures = 0;
        cursor = advance(cursor, event);
        yield event;
        if (
          event.payload.$case === 'message' ||
          isOver(stateIn(event.payload) ?? TaskState.TASK_STATE_UNSPECIFIED)
        )
          return;
      }
      if (isLast || !cursor) return;
      // Closed without the end. If the task has ended meanwhile, its log still has the missing events.
      isLast = isOver(await client.stateOf(cursor.taskId));
    } catch (error) {
      failures += 1;
      if (!isLost(error) || !cursor || failures > TRIES) throw error;
      if (failures === 1) onLost?.();
      isLast = false;
    }
    if (!isLast) await delay(pauseMs);
    events = client.subscribe(cursor.taskId, cursor.after);
  }
}

/** Without a sequence there is no place to continue from. */
function advance(
  cursor: { taskId: string; after: number } | undefined,
  { payload, sequence }: NumberedEvent,
): typeof cursor {
  const taskId = cursor?.taskId ?? taskIdOf(payload);
  return taskId === undefined || sequence === undefined ? undefined : { taskId, after: sequence };
}

const taskIdOf = (payload: Payload): string | undefined =>
  payload.$case === 'task' ? payload.value.id : payload.value.taskId || undefined;
