/**
 * A2A 0.1 over JSON-RPC, as the systems that still speak it do. Where it differs from the canonical model:
 * - methods are `tasks/send`, `tasks/sendSubscribe`, `tasks/get`, `tasks/cancel`; a send names its task by an
 *   id of the caller's own, which is an alias of ours;
 * - messages have no ids; parts are `{type: "text" | "data", …}`; `sessionId` is what became the context;
 * - every result is the bare task; a stream repeats the whole task with every status, as `event: status` and
 *   without an envelope, so a frame is encoded from all events so far;
 * - a cancel has a `reason`, which is kept as metadata.
 * How a task is written differs between the systems (string or message in the status, `canceled` or
 * `cancelled`), so each profile brings its own form of it.
 */
import { encodeCard } from '../../cards/encode-card.js';
import type { AnswerContext } from '../../codec.js';
import { type Message, type Task, TaskState } from '../../model.js';
import type { StreamItem } from '../../operation.js';
import { TaskFold } from '../../task-fold.js';
import type { EventPayload } from '../../task-event.js';
import type { Family } from '../define-codec.js';
import { METHODS } from './decode.js';

/** How one system writes a task. */
export type WriteTask = (task: Task, context: AnswerContext) => unknown;

const NO_CONTEXT: AnswerContext = { agentId: '' };

/** The family with one system's form of a task. */
export const v0_1Family = (writeTask: WriteTask): Family => ({
  version: '0.1',
  methods: METHODS,
  results: {
    sendMessage: (result, context) =>
      writeTask(result.$case === 'task' ? result.value : taskOfMessage(result.value), context),
    getTask: writeTask,
    cancelTask: writeTask,
    listTasks: ({ tasks }, context) => tasks.map((task) => writeTask(task, context)),
    pushNotificationConfig: (never) => never,
    getExtendedAgentCard: (card) => encodeCard(card, '0.2'),
  },
  encodeItem: ({ payload }) => writeTask(taskOf(payload), NO_CONTEXT),
  shape: { task: (task) => task, stream: taskFrames },
  framing: { event: 'status', enveloped: false, errorEvent: 'error' },
});

/** The whole task at every change of its status; artifacts come along with the next one. */
export function taskFrames(): (item: StreamItem) => StreamItem[] {
  const fold = new TaskFold();
  return ({ sequence, payload }) => {
    fold.apply(payload);
    return payload.$case === 'artifactUpdate'
      ? []
      : [{ sequence, payload: { $case: 'task', value: fold.task() } }];
  };
}

/** One event by itself, as far as it tells of its task. */
function taskOf(payload: EventPayload): Task {
  if (payload.$case === 'task') return payload.value;
  const fold = new TaskFold();
  fold.apply(payload);
  const { taskId: id, contextId } = payload.value;
  return { ...fold.task(), id, contextId };
}

/** A family without bare messages says them as the task they are the reply of. */
const taskOfMessage = (message: Message): Task => ({
  id: message.taskId,
  contextId: message.contextId,
  status: { state: TaskState.TASK_STATE_COMPLETED, message, timestamp: undefined },
  artifacts: [],
  history: [message],
  metadata: undefined,
});
