import type { CallContext } from './call-context.js';
import type {
  AgentCard,
  Artifact,
  CancelTaskRequest,
  DeleteTaskPushNotificationConfigRequest,
  GetTaskPushNotificationConfigRequest,
  GetTaskRequest,
  ListTaskPushNotificationConfigsRequest,
  ListTaskPushNotificationConfigsResponse,
  ListTasksRequest,
  ListTasksResponse,
  Message,
  SendMessageRequest,
  SubscribeToTaskRequest,
  Task,
  TaskPushNotificationConfig,
} from './model.js';
import type { EventPayload } from './artifact-fold.js';
import type { EncodedText } from './logged-event.js';
import { CARD_SCOPES, type Scope } from './rights.js';

/** One frame of a stream. The Task that opens a stream carries the sequence it is cut at. */
export interface StreamItem {
  sequence: number;
  payload: EventPayload;
  /** The payload as it is stored (`serializePayload`), if it came as text. Many readers may share such an item. */
  json?: string;
  /** What codecs have made of `json`: each encodes it once, for all its readers. */
  encoded?: EncodedText | undefined;
}

/** A send answers with the task, or with a bare message when that is what the agent replied. */
export type SendResult =
  | {
      $case: 'task';
      value: Task;
      /** The task's artifacts as they were when the message was accepted; unset = it had none. */
      priorArtifacts?: readonly Artifact[];
    }
  | { $case: 'message'; value: Message };

/** The data about an operation for every component that handles its calls. */
interface OperationDefinition<Request, Result, Streaming extends boolean> {
  /** True: the answer is a stream of `StreamItem`s. False: it is one result. */
  readonly streaming: Streaming;
  /** A read changes nothing. A write is already done when its answer is prepared. */
  readonly access: 'read' | 'write';
  /** The token needs one of these scopes. `admin` includes all of them. */
  readonly scopes: readonly Scope[];
  /** What a bearer token is required for, as the text of an error. Unset: guests of a host may call it, too. */
  readonly tokenRequired?: string;
  /** True: the agent must exist and, where a profile asks for it, be enabled. False: its tasks are enough. */
  readonly needsLiveAgent: boolean;
  /** The task that a request names. */
  readonly taskIdOf: (request: Request) => string | undefined;
  /** The task that a result, or an item of the stream, is about. */
  readonly resultTaskIdOf: (result: Result) => string | undefined;
  /** How much history the caller asks for; undefined = all. */
  readonly historyLengthOf?: (request: Request) => number | undefined;
}

type Declaration<Request, Result> = Omit<OperationDefinition<Request, Result, boolean>, 'streaming'>;

const unary = <Request, Result>(
  declaration: Declaration<Request, Result>,
): OperationDefinition<Request, Result, false> => ({ ...declaration, streaming: false });

const streaming = <Request>(
  declaration: Omit<Declaration<Request, StreamItem>, 'resultTaskIdOf'>,
): OperationDefinition<Request, StreamItem, true> => ({
  ...declaration,
  streaming: true,
  resultTaskIdOf: ({ payload }) => (payload.$case === 'task' ? payload.value.id : undefined),
});

const CALL: readonly Scope[] = ['agents:call'];
/** A token that may call an agent may also read the tasks. */
const READ: readonly Scope[] = ['tasks:read', 'agents:call'];

const SEND = {
  access: 'write',
  scopes: CALL,
  needsLiveAgent: true,
  taskIdOf: ({ message }: SendMessageRequest) => message?.taskId || undefined,
  historyLengthOf: ({ configuration }: SendMessageRequest) => configuration?.historyLength,
} as const;

/** A config names the receiver of the content of a task. So its readers must also be allowed to act on the task. */
const PUSH = {
  scopes: CALL,
  // Guests of one address may be one caller, and their addresses are unknown when their tasks end.
  tokenRequired: 'for push notifications',
  needsLiveAgent: false,
  taskIdOf: ({ taskId }: { taskId: string }) => taskId,
} as const;

/**
 * Every operation of A2A 1.0 §3.1. This table is the one place that describes them: codecs, edge, use cases and
 * log fields derive from it. To add one, add its entry; the compiler then names its codecs' entries and its use case.
 */
export const OPERATIONS = {
  sendMessage: unary<SendMessageRequest, SendResult>({
    ...SEND,
    resultTaskIdOf: ({ $case, value }) => ($case === 'task' ? value.id : value.taskId || undefined),
  }),
  sendStreamingMessage: streaming<SendMessageRequest>(SEND),
  getTask: unary<GetTaskRequest, Task>({
    access: 'read',
    scopes: READ,
    needsLiveAgent: false,
    taskIdOf: ({ id }) => id,
    resultTaskIdOf: ({ id }) => id,
    historyLengthOf: ({ historyLength }) => historyLength,
  }),
  listTasks: unary<ListTasksRequest, ListTasksResponse>({
    access: 'read',
    scopes: READ,
    // Guests of one address may be one caller: a list would show them each other's tasks.
    tokenRequired: 'to list tasks',
    needsLiveAgent: false,
    taskIdOf: () => undefined,
    resultTaskIdOf: () => undefined,
    historyLengthOf: ({ historyLength }) => historyLength,
  }),
  cancelTask: unary<CancelTaskRequest, Task>({
    access: 'write',
    scopes: CALL,
    needsLiveAgent: false,
    taskIdOf: ({ id }) => id,
    resultTaskIdOf: ({ id }) => id,
  }),
  subscribeToTask: streaming<SubscribeToTaskRequest>({
    access: 'read',
    scopes: READ,
    needsLiveAgent: false,
    taskIdOf: ({ id }) => id,
  }),
  createTaskPushNotificationConfig: unary<TaskPushNotificationConfig, TaskPushNotificationConfig>({
    ...PUSH,
    access: 'write',
    resultTaskIdOf: ({ taskId }) => taskId,
  }),
  getTaskPushNotificationConfig: unary<GetTaskPushNotificationConfigRequest, TaskPushNotificationConfig>({
    ...PUSH,
    access: 'read',
    resultTaskIdOf: ({ taskId }) => taskId,
  }),
  listTaskPushNotificationConfigs: unary<
    ListTaskPushNotificationConfigsRequest,
    ListTaskPushNotificationConfigsResponse
  >({ ...PUSH, access: 'read', resultTaskIdOf: () => undefined }),
  deleteTaskPushNotificationConfig: unary<DeleteTaskPushNotificationConfigRequest, Record<string, never>>({
    ...PUSH,
    access: 'write',
    resultTaskIdOf: () => undefined,
  }),
  getExtendedAgentCard: unary<Record<string, never>, AgentCard>({
    access: 'read',
    // An agent can ask for others (`extended.scopes`).
    scopes: CARD_SCOPES,
    tokenRequired: 'to read the extended card',
    needsLiveAgent: true,
    taskIdOf: () => undefined,
    resultTaskIdOf: () => undefined,
  }),
};

export type OperationName = keyof typeof OPERATIONS;

/** Names of the operations on push notification configs. */
export type PushOperationName = Extract<OperationName, `${string}PushNotificationConfig${string}`>;

/** Whether an operation is one of push notification configs. */
export const isPush = (operation: OperationName): operation is PushOperationName =>
  operation.includes('PushNotificationConfig');

/** The canonical request of each operation. */
export type Requests = {
  [K in OperationName]: Parameters<(typeof OPERATIONS)[K]['taskIdOf']>[0];
};
/** The canonical result of each operation; of a streaming one, an item of its stream. */
export type Results = {
  [K in OperationName]: Parameters<(typeof OPERATIONS)[K]['resultTaskIdOf']>[0];
};

export type StreamingOperationName = {
  [K in OperationName]: (typeof OPERATIONS)[K]['streaming'] extends true ? K : never;
}[OperationName];
export type UnaryOperationName = Exclude<OperationName, StreamingOperationName>;

/** A decoded request: which operation, with its canonical request. */
export type OperationCall<K extends OperationName = OperationName> = {
  [P in K]: { operation: P; request: Requests[P] };
}[K];
export type StreamingCall = OperationCall<StreamingOperationName>;

/** A call with the fields of a wire version that the canonical request does not have. */
export type DecodedCall = OperationCall & {
  /** The id the caller has chosen for the task of this message; it is an alias, not the task's own id. */
  clientTaskId?: string;
};

/**
 * The use cases that answer with one result. `signal` aborts when the caller is gone, and when the call is over, however it
 * ended. That never stops a run.
 */
export type UnaryOperations = {
  [K in UnaryOperationName]: (
    call: CallContext,
    request: Requests[K],
    signal: AbortSignal,
  ) => Promise<Results[K]>;
};
/**
 * The use cases that answer with a stream. They throw errors before the first item. Items that have come together are
 * yielded together, because each turn of a generator costs as much as an item. The first one comes alone. A reader that may
 * wait for long takes the items out of the array, because generators keep it until the next one. `signal` aborts as above.
 */
export type StreamingOperations = {
  [K in StreamingOperationName]: (
    call: CallContext,
    request: Requests[K],
    signal: AbortSignal,
  ) => AsyncGenerator<StreamItem[]>;
};
/** Every use case by name. */
export type Operations = UnaryOperations & StreamingOperations;

// The same table for code with an operation of type `K`.
const BY_NAME: {
  readonly [K in OperationName]: Pick<
    OperationDefinition<Requests[K], Results[K], boolean>,
    'taskIdOf' | 'resultTaskIdOf' | 'historyLengthOf'
  >;
} = OPERATIONS;

/** Whether a call is answered with a stream. */
export const isStreaming = (call: OperationCall): call is StreamingCall =>
  OPERATIONS[call.operation].streaming;

/** The task that a call names. */
export const requestedTaskId = <K extends OperationName>({
  operation,
  request,
}: OperationCall<K>): string | undefined => BY_NAME[operation].taskIdOf(request);

/** The task that an answer, or an item of a stream, is about. */
export const answeredTaskId = <K extends OperationName>(
  operation: K,
  result: Results[K],
): string | undefined => BY_NAME[operation].resultTaskIdOf(result);

/** How much history a call asks for; undefined = all. */
export const historyLengthOf = <K extends OperationName>({
  operation,
  request,
}: OperationCall<K>): number | undefined => BY_NAME[operation].historyLengthOf?.(request);
