import { type StreamItem, type Task, TaskState } from '@baton/a2a';

/** A task as an operation returns it; pass what matters to the test. */
export const sampleTask = (members: Partial<Task> = {}): Task => ({
  id: 'task-1',
  contextId: 'context-1',
  status: {
    state: TaskState.TASK_STATE_COMPLETED,
    message: undefined,
    timestamp: '2026-01-31T12:00:00.000Z',
  },
  artifacts: [],
  history: [],
  metadata: undefined,
  ...members,
});

/** The first frame of a stream. */
export const taskItem = (sequence = 1): StreamItem => ({
  sequence,
  payload: { $case: 'task', value: sampleTask() },
});

/** A later frame of a stream. */
export const statusItem = (sequence: number, state: TaskState): StreamItem => ({
  sequence,
  payload: {
    $case: 'statusUpdate',
    value: {
      taskId: 'task-1',
      contextId: 'context-1',
      status: { state, message: undefined, timestamp: '2026-01-31T12:00:00.000Z' },
      metadata: undefined,
    },
  },
});

const message = { messageId: 'm-1', role: 'ROLE_USER', parts: [{ text: 'hi' }] };

/** JSON-RPC requests of 1.0 as a client sends them. */
export const request = {
  send: { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } },
  stream: { jsonrpc: '2.0', id: 's', method: 'SendStreamingMessage', params: { message } },
  get: { jsonrpc: '2.0', id: 2, method: 'GetTask', params: { id: 'task-1' } },
  subscribe: { jsonrpc: '2.0', id: 3, method: 'SubscribeToTask', params: { id: 'task-1' } },
  cancel: { jsonrpc: '2.0', id: 4, method: 'CancelTask', params: { id: 'task-1' } },
  list: { jsonrpc: '2.0', id: 5, method: 'ListTasks', params: {} },
};

/** The same of 0.3. */
export const legacyRequest = {
  send: {
    jsonrpc: '2.0',
    id: 1,
    method: 'message/send',
    params: {
      message: { kind: 'message', messageId: 'm-1', role: 'user', parts: [{ kind: 'text', text: 'hi' }] },
    },
  },
  get: { jsonrpc: '2.0', id: 2, method: 'tasks/get', params: { id: 'task-1' } },
};
