import type { Contract } from '../support/contract.js';
import { type Answer, freshId, type Headers, type Watch } from '../support/wire.js';

interface CallOptions {
  agent?: string;
  headers?: Headers;
  id?: string | number | null;
  watch?: Watch;
}

/** Requests as a client of Arbiter writes them. */
export function arbiterClient(api: Contract) {
  const path = (agent = 'echo') => `/v1/a2a/agents/${agent}`;

  const call = (method: string, params: object, options: CallOptions = {}): Promise<Answer> => {
    const { agent, headers, id = 1, watch } = options;
    return api.post(path(agent), { jsonrpc: '2.0', id, method, params }, headers, watch);
  };

  const message = (text: string, more: object = {}) => ({
    role: 'user',
    messageId: freshId(),
    parts: [{ kind: 'text', text }],
    contextId: 'c-42',
    ...more,
  });

  const send = (text: string, more: object = {}, options: CallOptions = {}) =>
    call('message/send', { message: message(text, more) }, options);

  /** Does something with a task at work that has said `hello `; what its stream has shown till its end. */
  const atWork = async (act: (id: string) => Promise<void>): Promise<Answer> => {
    const watch: Watch = async ({ data }) => {
      if (data.result.kind !== 'artifact-update' || data.result.lastChunk) return;
      const id = data.result.taskId as string;
      try {
        await act(id);
      } finally {
        await call('tasks/cancel', { id }, { agent: 'stubborn' });
      }
    };
    return call('message/stream', { message: message('go') }, { agent: 'stubborn', watch });
  };

  return { path, call, message, send, atWork };
}
