// The load generator: plain node:http with keep-alive sockets, because it shares the machine with the server.
import http from 'node:http';
import { randomUUID } from 'node:crypto';

/** A server under load: where to post, with which headers. */
export class Target {
  constructor(name, url, headers = {}) {
    this.name = name;
    this.url = new URL(url);
    this.headers = { 'content-type': 'application/json', 'a2a-version': '1.0', ...headers };
    this.agent = new http.Agent({ keepAlive: true, maxSockets: 256 });
  }

  /** One blocking SendMessage. Resolves when the task has completed, rejects when it has not. */
  async send(text = 'hello') {
    const body = await this.#post('SendMessage', { message: message(text) }, (response) => textOf(response));
    const { result, error } = JSON.parse(body);
    if (result?.task?.status?.state !== 'TASK_STATE_COMPLETED')
      throw new Error(JSON.stringify(error ?? result));
  }

  /** One stream of `chunks` chunks. Resolves with the number of frames; rejects unless it ended completed. */
  async stream(chunks, text = 'hello') {
    const params = { message: message(text, { echo: { chunks } }) };
    return this.#post('SendStreamingMessage', params, framesOf);
  }

  /** Has a task accepted and does not wait for it. */
  async submit(text, metadata) {
    const params = { message: message(text, metadata), configuration: { returnImmediately: true } };
    const { result, error } = JSON.parse(await this.#post('SendMessage', params, textOf));
    if (!result?.task) throw new Error(JSON.stringify(error ?? result));
  }

  close() {
    this.agent.destroy();
  }

  #post(method, params, read) {
    return new Promise((resolve, reject) => {
      const request = http.request(
        this.url,
        { method: 'POST', headers: this.headers, agent: this.agent },
        (response) => read(response).then(resolve, reject),
      );
      request.on('error', reject);
      request.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
    });
  }
}

const message = (text, metadata) => ({
  messageId: randomUUID(),
  role: 'ROLE_USER',
  parts: [{ text }],
  metadata,
});

async function textOf(response) {
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) text += chunk;
  return text;
}

async function framesOf(response) {
  let frames = 0;
  let tail = '';
  for await (const chunk of response.setEncoding('utf8')) {
    frames += chunk.split('\ndata:').length - 1 + (chunk.startsWith('data:') ? 1 : 0);
    tail = (tail + chunk).slice(-2000);
  }
  if (!tail.includes('TASK_STATE_COMPLETED')) throw new Error(`stream did not complete: ${tail}`);
  return frames;
}
