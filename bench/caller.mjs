// A caller of one Baton, for figures about single calls: each method resolves when the answer is complete.
import { randomUUID } from 'node:crypto';
import http from 'node:http';

export class Caller {
  #agent = new http.Agent({ keepAlive: true, maxSockets: 64 });

  constructor(url, token) {
    this.url = url;
    this.token = token;
  }

  /** A JSON-RPC call; its result. */
  async call(method, params, { path = '/agents/echo', version = '1.0', headers = {} } = {}) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });
    const sent = { 'content-type': 'application/json', 'a2a-version': version, ...headers };
    const answer = JSON.parse(await this.#request('POST', path, sent, body));
    if (answer.error) throw new Error(`${method}: ${answer.error.message}`);
    return answer.result;
  }

  /** The frames of a stream that ends by itself. */
  async resume(taskId, lastEventId) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SubscribeToTask', params: { id: taskId } });
    const headers = {
      'content-type': 'application/json',
      'a2a-version': '1.0',
      'last-event-id': String(lastEventId),
    };
    const text = await this.#request('POST', '/agents/echo', headers, body);
    return text.split('\n').filter((line) => line.startsWith('data:')).length;
  }

  async get(path) {
    return JSON.parse(await this.#request('GET', path, {}));
  }

  close() {
    this.#agent.destroy();
  }

  #request(method, path, headers, body) {
    return new Promise((resolve, reject) => {
      const options = {
        method,
        agent: this.#agent,
        headers: { authorization: `Bearer ${this.token}`, ...headers },
      };
      const request = http.request(new URL(path, this.url), options, (response) => {
        let text = '';
        response
          .setEncoding('utf8')
          .on('data', (chunk) => (text += chunk))
          .on('end', () => resolve(text))
          .on('error', reject);
      });
      request.on('error', reject);
      request.end(body);
    });
  }
}

/** Params of a send. */
export const message = (text, more = {}) => ({
  message: { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }], ...more },
});
