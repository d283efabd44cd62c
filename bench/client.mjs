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
  async send(text = 'hello', metadata) {
    const body = await this.#post('SendMessage', { message: message(text, metadata) }, textOf);
    const { result, error } = JSON.parse(body);
    if (result?.task?.status?.state !== 'TASK_STATE_COMPLETED')
      throw new Error(JSON.stringify(error ?? result));
  }

  /** The same as a call of the tool over MCP. */
  async callTool(text = 'hello') {
    const params = {
      name: this.url.pathname.split('/').at(-1),
      arguments: { message: text },
      _meta: MCP_META,
    };
    const headers = { ...this.headers, ...MCP_HEADERS, 'mcp-name': params.name };
    const { result, error } = JSON.parse(await this.#post('tools/call', params, textOf, '/mcp', headers));
    if (result?._meta?.['baton/state'] !== 'completed') throw new Error(JSON.stringify(error ?? result));
  }

  /** One stream of `chunks` chunks. Resolves with the number of frames; rejects unless it ended completed. */
  async stream(chunks, text = 'hello') {
    const params = { message: message(text, { echo: { chunks } }) };
    return this.#post('SendStreamingMessage', params, framesOf);
  }

  /** One stream. Resolves, after its end, with the milliseconds until its `working` frame. */
  async firstEvent(chunks) {
    const start = performance.now();
    const params = { message: message('hello', { echo: { chunks } }) };
    const { working } = await this.#post('SendStreamingMessage', params, timesOf);
    return working - start;
  }

  /**
   * One stream. Resolves with the milliseconds from the moment at which the worker completed the task until the frame is
   * here. The timestamp has whole milliseconds, so half of one is taken away.
   */
  async lastFrameLag() {
    const { completed, timestamp } = await this.#post(
      'SendStreamingMessage',
      { message: message('hello') },
      timesOf,
    );
    return performance.timeOrigin + completed - Date.parse(timestamp) - 0.5;
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

  #post(method, params, read, path = this.url.pathname, headers = this.headers) {
    return new Promise((resolve, reject) => {
      const request = http.request(
        new URL(path, this.url),
        { method: 'POST', headers, agent: this.agent },
        (response) => read(response).then(resolve, reject),
      );
      request.on('error', reject);
      request.end(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
    });
  }
}

const MCP_VERSION = '2026-07-28';
const MCP_HEADERS = {
  accept: 'application/json',
  'mcp-protocol-version': MCP_VERSION,
  'mcp-method': 'tools/call',
};
const MCP_META = {
  'io.modelcontextprotocol/protocolVersion': MCP_VERSION,
  'io.modelcontextprotocol/clientCapabilities': {},
};

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

/** When the `working` frame and the `completed` one came, and the timestamp in the latter. */
async function timesOf(response) {
  const times = {};
  let text = '';
  for await (const chunk of response.setEncoding('utf8')) {
    const now = performance.now();
    text += chunk;
    if (!times.working && text.includes('TASK_STATE_WORKING')) times.working = now;
    if (!times.completed && text.includes('TASK_STATE_COMPLETED')) times.completed = now;
  }
  const frames = text.split('\n').filter((line) => line.startsWith('data:'));
  const { result } = JSON.parse(frames.at(-1).slice('data:'.length));
  const { state, timestamp } = result.statusUpdate.status;
  if (state !== 'TASK_STATE_COMPLETED') throw new Error(`stream did not complete: ${text.slice(-2000)}`);
  return { ...times, timestamp };
}
