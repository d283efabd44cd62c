/**
 * A2A 0.1 over JSON-RPC, as today's systems with it send it. Where it differs from the canonical model:
 * - methods are `tasks/send`, `tasks/sendSubscribe`, `tasks/get`, `tasks/cancel`; a send names its task by an
 *   id of the caller's own, which is an alias of ours;
 * - messages have no ids; parts are `{type: "text" | "data", …}`; `sessionId` is the context;
 * - every result is the bare task; a stream repeats the whole task with every status, as `event: status` and
 *   without an envelope, so a frame is encoded from all events so far;
 * - a cancel has a `reason`, which is kept as metadata.
 * How a task is written differs between the systems (string or message in the status, `canceled` or
 * `cancelled`), so each profile brings its own form of it.
 */
import { TaskFold } from '../task-fold.js';
import { type EventPayload } from '../artifact-fold.js';
import {
  type CancelTaskRequest,
  type Message,
  type SendMessageRequest,
  type Task,
  TaskState,
} from '../model.js';
import type { StreamItem } from '../operation.js';
import { type AnswerContext, type WireVersion, withoutMethods } from './codec.js';
import { readMessage } from './params.js';
import type { Fields } from './fields.js';
import { ROLES, V0_3 } from './v0_3.js';

/** Longest reason of a cancel, in bytes of UTF-8. */
const MAX_REASON_BYTES = 1024;
const EMPTY_CONTEXT: AnswerContext = { agentId: '' };

/** How one system writes a task. */
export type WriteTask = (task: Task, context: AnswerContext) => unknown;

/** The version with one system's form of a task. */
export const v0_1 = (writeTask: WriteTask): WireVersion => ({
  version: '0.1',
  operations: {
    // Operations and features that 0.1 does not have.
    ...withoutMethods(V0_3),
    sendMessage: {
      methods: { 'tasks/send': readSend },
      clientTaskId: readId,
      encode: (result, context) =>
        writeTask(result.$case === 'task' ? result.value : taskOfMessage(result.value), context),
    },
    sendStreamingMessage: { methods: { 'tasks/sendSubscribe': readSend }, clientTaskId: readId },
    getTask: {
      methods: {
        'tasks/get': (params) => ({ tenant: '', id: readId(params), historyLength: params.historyLength() }),
      },
      encode: writeTask,
    },
    listTasks: {
      methods: {},
      encode: ({ tasks }, context) => tasks.map((task) => writeTask(task, context)),
    },
    cancelTask: { methods: { 'tasks/cancel': readCancelTask }, encode: writeTask },
  },
  encodeItem: ({ payload }) => writeTask(taskOf(payload), EMPTY_CONTEXT),
  shape: { task: (task) => task, stream: taskFrames },
  framing: { event: 'status', enveloped: false, errorEvent: 'error', commentEnd: '\n\n' },
});

function readId(params: Fields): string {
  return params.requiredId('id');
}

function readSend(params: Fields): SendMessageRequest {
  const message = readMessage(params, ROLES, 'optional');
  const historyLength = params.historyLength();
  return {
    tenant: '',
    // The id of the task is the caller's own, and not a part of the canonical request.
    message: { ...message, taskId: '', contextId: message.contextId || params.id('sessionId') },
    configuration: {
      acceptedOutputModes: params.strings('acceptedOutputModes'),
      taskPushNotificationConfig: undefined,
      historyLength,
      returnImmediately: false,
    },
    metadata: params.object('metadata'),
  };
}

function readCancelTask(params: Fields): CancelTaskRequest {
  const reason = params.string('reason');
  if (reason !== undefined && Buffer.byteLength(reason) > MAX_REASON_BYTES) {
    throw params.refuse('reason', `must not be longer than ${MAX_REASON_BYTES} bytes`);
  }
  return { tenant: '', id: readId(params), metadata: reason === undefined ? undefined : { reason } };
}

/** The whole task at every change of its status. Artifacts come with the next change. */
export function taskFrames(): (item: StreamItem) => StreamItem[] {
  const fold = new TaskFold();
  return ({ sequence, payload }) => {
    fold.apply(payload);
    return payload.$case === 'artifactUpdate'
      ? []
      : [{ sequence, payload: { $case: 'task', value: fold.task() } }];
  };
}

/** A task from one event alone, with the parts that the event has. */
function taskOf(payload: EventPayload): Task {
  if (payload.$case === 'task') return payload.value;
  const fold = new TaskFold();
  fold.apply(payload);
  const { taskId: id, contextId } = payload.value;
  return { ...fold.task(), id, contextId };
}

/** 0.1 has no bare messages: a reply is written as its task. */
const taskOfMessage = (message: Message): Task => ({
  id: message.taskId,
  contextId: message.contextId,
  status: { state: TaskState.TASK_STATE_COMPLETED, message, timestamp: undefined },
  artifacts: [],
  history: [message],
  metadata: undefined,
});
