import {
  type Codec,
  type EventPayload,
  type Task,
  type TaskEvent,
  type TaskSnapshot,
  taskStateToJSON,
  V0_3_CODEC,
  V1_0_CODEC,
  wellFormedJson,
} from '@baton/a2a';
import type { ClaimedPush, WebhookTarget } from '@baton/database';
import { isTraceparent } from '@baton/telemetry';
import { webhookBody } from './webhook-payload.js';

/** The contents of one request to a receiver. */
export interface PushRequest {
  /** The event that it delivers, or the last one of several. */
  sequence: number;
  /** The delivery has all events up to this one. */
  through: number;
  /** Without the headers that prove the sender. */
  headers: Record<string, string>;
  body: string;
}

/** One entry of a request: an event, or the task as of an event. */
interface Told {
  first: number;
  sequence: number;
  payload: EventPayload;
}

interface BodyForm {
  codec: Codec;
  contentType: string;
}

const FORMS: Record<ClaimedPush['protocol'], BodyForm> = {
  '1.0': { codec: V1_0_CODEC, contentType: 'application/a2a+json' },
  '0.3': { codec: V0_3_CODEC, contentType: 'application/json' },
  webhook: { codec: V1_0_CODEC, contentType: 'application/json' },
};

/** Whether the request for these events contains the present task. */
export const needsTask = ({ protocol, mode }: ClaimedPush, events: readonly TaskEvent[]): boolean =>
  protocol === '0.3' || (protocol === '1.0' && mode === 'newest' && events.length > 1);

/**
 * The requests that deliver these events to a config, in order. None: this config receives none of them.
 * @param events the next ones of the log, without a gap
 * @param snapshot the task after these events or later; required if `needsTask` returns true
 * @param webhook the native webhook that the config is for, if it is for one
 * @param publicUrl PUBLIC_URL
 */
export function pushRequests(
  config: ClaimedPush,
  events: readonly TaskEvent[],
  {
    snapshot,
    webhook,
    publicUrl,
  }: { snapshot?: TaskSnapshot | undefined; webhook?: WebhookTarget | undefined; publicUrl: string },
): PushRequest[] {
  const isNewest = config.mode === 'newest';
  const sent = isNewest && snapshot ? [newest(snapshot, events)] : sentTo(config, events, snapshot, webhook);
  const encoded = ({ sequence, payload }: Told): string =>
    webhook
      ? webhookBody({ ...webhook, publicUrl }, sequence, payload)
      : JSON.stringify(FORMS[config.protocol].codec.encodeItem({ sequence, payload }));
  const [first] = sent;
  const last = sent.at(-1);
  if (!first || !last) return [];
  const end = Math.max(last.sequence, events.at(-1)?.sequence ?? 0);
  if (config.mode === 'batch') {
    const bodies = sent.map(encoded).join(',');
    const sequences = JSON.stringify(sent.map(({ sequence }) => sequence));
    const body = `{"events":[${bodies}],"sequences":${sequences}}`;
    return [requestOf(config, { ...last, first: first.first }, body, end)];
  }
  return (isNewest ? [last] : sent).map((one) =>
    requestOf(config, one, encoded(one), one === last ? end : one.sequence),
  );
}

/**
 * 1.0 delivers each event. 0.3 delivers only tasks: there is one for each status, and one for what has come after the last of
 * them. A task shows all artifacts, so more would say nothing new. A native webhook gets a change of state, if it asks
 * for this state.
 */
function sentTo(
  { protocol, states }: ClaimedPush,
  events: readonly TaskEvent[],
  snapshot: TaskSnapshot | undefined,
  webhook: WebhookTarget | undefined,
): Told[] {
  if (protocol === '1.0') return events.map(asItIs);
  if (protocol === 'webhook') {
    let before = webhook?.stateBefore;
    return events
      .filter(({ payload }) => {
        const state = statusOf(payload)?.state;
        // Progress of an agent comes as the same state again.
        if (state === undefined || taskStateToJSON(state) === before) return false;
        before = taskStateToJSON(state);
        return states?.includes(state) ?? true;
      })
      .map(asItIs);
  }
  return snapshot ? tasksOf(events, snapshot) : [];
}

function tasksOf(events: readonly TaskEvent[], snapshot: TaskSnapshot): Told[] {
  const tasks: Told[] = [];
  let first = events[0]?.sequence ?? 0;
  for (const { sequence, payload } of events) {
    const status = statusOf(payload);
    if (!status) continue;
    tasks.push({ first, sequence, payload: taskPayload({ ...snapshot.task, status }) });
    first = sequence + 1;
  }
  const end = events.at(-1)?.sequence ?? 0;
  // If the task is newer already, later events deliver the rest.
  if (first <= end && snapshot.sequence === end) {
    tasks.push({ first, sequence: end, payload: taskPayload(snapshot.task) });
  }
  return tasks;
}

const asItIs = ({ sequence, payload }: TaskEvent): Told => ({ first: sequence, sequence, payload });

/** The task in place of all events that wait. */
const newest = ({ task, sequence }: TaskSnapshot, events: readonly TaskEvent[]): Told => ({
  first: events[0]?.sequence ?? sequence,
  sequence,
  payload: taskPayload(task),
});

const taskPayload = (task: Task): EventPayload => ({ $case: 'task', value: task });

const statusOf = (payload: EventPayload): Task['status'] =>
  payload.$case === 'artifactUpdate' ? undefined : payload.value.status;

function requestOf(
  config: ClaimedPush,
  { first, sequence }: Told,
  body: string,
  through: number,
): PushRequest {
  const { taskId, protocol, traces } = config;
  const { codec, contentType } = FORMS[protocol];
  const trace = traces.find(([start]) => start <= sequence)?.[1];
  const headers: Record<string, string> = {
    'content-type': contentType,
    'user-agent': 'Baton',
    'a2a-version': codec.version,
    'baton-task': taskId,
    'baton-sequence': String(sequence),
    ...(first < sequence && { 'baton-first-sequence': String(first) }),
    ...(trace && isTraceparent(trace) && { traceparent: trace }),
  };
  return { sequence, through, headers, body: wellFormedJson(body) };
}
