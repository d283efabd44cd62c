import type { Wired } from '../support/wire.js';
import type { Artifacts, Generation, HistoryMessage, Said, State } from './observations.js';

/** A message for an agent, before it is in any generation's form. */
export interface Outgoing {
  messageId: string;
  text: string;
  metadata: object;
  taskId?: string;
}

export type SendHow = 'stream' | 'block' | 'at-once';

/** How one generation of the protocol writes requests and reports outcomes. */
export interface Dialect {
  methods: Record<'send' | 'stream' | 'get' | 'cancel' | 'subscribe', string>;
  sendParams(message: Outgoing, how: SendHow): object;
  /** The content of a `result`: of an answer or of a frame. */
  read(result: Wired): Said;
}

const stateOf = (state: string): State => state.replace('TASK_STATE_', '').toLowerCase().replace('_', '-');

const textsOf = (parts: { text?: string }[] = []): string[] => parts.map(({ text }) => text ?? '');

const artifactsOf = (artifacts: Wired[] = []): Artifacts =>
  Object.fromEntries(artifacts.map(({ artifactId, parts }) => [artifactId as string, textsOf(parts)]));

const historyOf = (history: Wired[] = []): HistoryMessage[] =>
  history.map(({ messageId, role }) => ({
    messageId: messageId as string,
    role: String(role).toLowerCase().includes('user') ? 'user' : 'agent',
  }));

const taskOf = ({ id, status, artifacts, history }: Wired): Said => ({
  kind: 'task',
  taskId: id as string,
  state: stateOf(status.state),
  artifacts: artifactsOf(artifacts),
  history: historyOf(history),
});
const statusOf = ({ taskId, status }: Wired): Said => ({
  kind: 'status',
  taskId: taskId as string,
  state: stateOf(status.state),
});
const artifactOf = ({ taskId, artifact, append }: Wired): Said => ({
  kind: 'artifact',
  taskId: taskId as string,
  artifactId: artifact.artifactId as string,
  append: append === true,
  texts: textsOf(artifact.parts),
});

const V1: Dialect = {
  methods: {
    send: 'SendMessage',
    stream: 'SendStreamingMessage',
    get: 'GetTask',
    cancel: 'CancelTask',
    subscribe: 'SubscribeToTask',
  },
  sendParams: ({ text, ...message }, how) => ({
    message: { ...message, role: 'ROLE_USER', parts: [{ text }] },
    ...(how === 'at-once' && { configuration: { returnImmediately: true } }),
  }),
  read: (result) => {
    if (result.task) return taskOf(result.task);
    if (result.statusUpdate) return statusOf(result.statusUpdate);
    if (result.artifactUpdate) return artifactOf(result.artifactUpdate);
    return result.status ? taskOf(result) : { kind: 'other' };
  },
};

const V03: Dialect = {
  methods: {
    send: 'message/send',
    stream: 'message/stream',
    get: 'tasks/get',
    cancel: 'tasks/cancel',
    subscribe: 'tasks/resubscribe',
  },
  sendParams: ({ text, ...message }, how) => ({
    message: { ...message, kind: 'message', role: 'user', parts: [{ kind: 'text', text }] },
    ...(how === 'at-once' && { configuration: { blocking: false } }),
  }),
  read: (result) => {
    if (result.kind === 'task') return taskOf(result);
    if (result.kind === 'status-update') return statusOf(result);
    return result.kind === 'artifact-update' ? artifactOf(result) : { kind: 'other' };
  },
};

export const DIALECTS: Record<Generation, Dialect> = { '1.0': V1, '0.3': V03 };

const TERMINAL: ReadonlySet<State> = new Set(['completed', 'failed', 'canceled', 'rejected']);
const INTERRUPTED: ReadonlySet<State> = new Set(['input-required', 'auth-required']);

export const isTerminal = (state: State | undefined): boolean => state !== undefined && TERMINAL.has(state);
export const endsTurn = (state: State | undefined): boolean =>
  state !== undefined && (isTerminal(state) || INTERRUPTED.has(state));

/** The state that a frame or an answer shows, if it shows one. */
export const stateIn = (said: Said): State | undefined =>
  said.kind === 'task' || said.kind === 'status' ? said.state : undefined;
