import type { Contract } from '../support/contract.js';
import { type Answer, freshId, type Headers, type Watch } from '../support/wire.js';

interface CallOptions {
  agent?: string;
  headers?: Headers;
  watch?: Watch;
}

/** Requests as clients of the specification write them. */
export function specClient(api: Contract) {
  const path = (agent = 'echo') => `/agents/${agent}`;
  const of =
    (version: string | undefined) =>
    (method: string, params: object, { agent, headers, watch }: CallOptions = {}): Promise<Answer> => {
      const body = { jsonrpc: '2.0', id: 1, method, params };
      return api.post(path(agent), body, { 'A2A-Version': version, ...headers }, watch);
    };
  const message = (text: string, more: object = {}) => ({
    messageId: freshId(),
    role: 'ROLE_USER',
    parts: [{ text }],
    ...more,
  });
  const legacyMessage = (text: string, more: object = {}) => ({
    kind: 'message',
    messageId: freshId(),
    role: 'user',
    parts: [{ kind: 'text', text }],
    ...more,
  });
  const v1 = of('1.0');
  const v03 = of(undefined);
  return {
    path,
    v1,
    v03,
    message,
    legacyMessage,
    send: (text: string, more: object = {}, params: object = {}, options: CallOptions = {}) =>
      v1('SendMessage', { message: message(text, more), ...params }, options),
    legacySend: (text: string, more: object = {}, params: object = {}, options: CallOptions = {}) =>
      v03('message/send', { message: legacyMessage(text, more), ...params }, options),
  };
}
