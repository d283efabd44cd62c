// The tenant of bench/neighbours.mjs that attacks.
import { setMaxListeners } from 'node:events';
import { connect } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import { over, post } from './socket-attacks.mjs';

const MIB = 1_048_576;
/** Guests reach the public agents of the attacker at these hosts. */
export const [GUESTS, GUESTS_OF_ECHO] = ['guests.example', 'echo.example'];

/** The body of a message with these parts. */
export function sendBody(parts, configuration = {}, metadata = {}, method = 'SendMessage') {
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts, metadata };
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { message, configuration } });
}

/** The tenant that attacks. Its calls end with the attack; whatever they are answered is noted. */
export class Attacker {
  answers = new Map();
  /** What attacks of sockets have sent. */
  sent = 0;

  /** Counts connections, for addresses of their own. */
  turn = 0;

  /**
   * @param ports URLs of the ports of the API: `url`, `grpc`, `management`
   * @param servers its servers (peer.mjs)
   * @param callers how many attack at once: `few`, and `many` where it is about sockets and names
   */
  constructor(ports, token, servers, { few, many } = {}) {
    Object.assign(this, {
      ...ports,
      token,
      servers,
      peer: servers.url,
      few,
      many,
      bearer: { authorization: `Bearer ${token}` },
    });
  }

  get a2aHeaders() {
    return { ...this.bearer, 'a2a-version': '1.0' };
  }

  /** Notes what came of something. */
  async note(outcome) {
    const answer = await outcome;
    this.answers.set(answer, (this.answers.get(answer) ?? 0) + 1);
  }

  /** Sends the bytes of a request without a token, and waits for the first bytes of its answer. */
  ask(bytes) {
    const { hostname, port } = new URL(this.url);
    const answer = new Promise((resolve) => {
      const socket = connect({ host: hostname, port: Number(port) }, () => socket.write(bytes));
      this.signal.addEventListener('abort', () => socket.destroy(), { once: true });
      socket.once('data', (data) => resolve(String(data).slice(9, 12))).on('error', () => undefined);
      socket.once('close', () => resolve('closed'));
    });
    return this.note(answer);
  }

  putRemote(slug, card) {
    const agent = { name: slug, description: 'Lives elsewhere.', runtime: 'remote-a2a', config: { card } };
    return this.request('PUT', `/v1/agents/${slug}`, JSON.stringify(agent));
  }

  /** A task with an answer of 8 MiB. */
  makeLarge() {
    return this.makeTask('large', { chunks: 16, chunkBytes: MIB / 2 });
  }

  /** A hundred tasks: a page of them with their artifacts has 3 MB. */
  async makeList() {
    if (this.hasList) return;
    for (let n = 0; n < 100; n++) await this.makeTask('listed', { chunks: 1, chunkBytes: 30_000 });
    this.hasList = true;
  }

  /** The bytes of a request for that page. */
  listReads() {
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'ListTasks',
      params: { pageSize: 100, includeArtifacts: true },
    });
    return post('/agents/echo', this.a2aHeaders, body);
  }

  /** A task with eight events of 3.5 MiB. */
  makeLargeEvents() {
    return this.makeTask('x'.repeat(3.5 * MIB), { chunks: 8 });
  }

  async makeTask(text, echo) {
    const headers = { ...this.a2aHeaders, 'content-type': 'application/json' };
    const body = sendBody([{ text }], {}, { echo });
    const answer = await fetch(`${this.url}/agents/echo`, { method: 'POST', headers, body });
    this.large = (await answer.json()).result.task.id;
  }

  /** A task that is at work, whose id is then `large`. */
  async startTask(text, echo) {
    const headers = { ...this.a2aHeaders, 'content-type': 'application/json' };
    const body = sendBody([{ text }], { returnImmediately: true }, { echo });
    const answer = await fetch(`${this.url}/agents/echo`, { method: 'POST', headers, body });
    this.large = (await answer.json()).result.task.id;
  }

  /** Finished tasks, for lists. */
  async makeTasks(count) {
    const text = 'x'.repeat(4_000);
    await Promise.all(Array.from({ length: count }, () => this.send('echo', text)));
  }

  async deleteWebhooks() {
    const headers = this.bearer;
    const answer = await fetch(`${this.url}/v1/webhooks?limit=100`, { headers });
    const { webhooks } = await answer.json();
    for (const { id } of webhooks)
      await fetch(`${this.url}/v1/webhooks/${id}`, { method: 'DELETE', headers });
  }

  message(parts, configuration) {
    return sendBody(parts, configuration);
  }

  /** Waits for the end of the attack. */
  rest() {
    return over(this.signal);
  }

  sendLate() {
    return this.taskOf({ delayMs: 600_000 }, true);
  }

  ask4input() {
    return this.taskOf({ askInput: true }, false);
  }

  /** Sends a message, and resolves with the id of its task. */
  async taskOf(echo, returnImmediately) {
    const headers = { ...this.a2aHeaders, 'content-type': 'application/json' };
    const body = sendBody([{ text: 'x' }], { returnImmediately }, { echo });
    const { signal } = this;
    try {
      const answer = await fetch(`${this.url}/agents/echo`, { method: 'POST', headers, body, signal });
      const { result } = await answer.json();
      await this.note(answer.status);
      return result?.task.id;
    } catch {
      return undefined;
    }
  }

  largeReads(to) {
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: this.large } });
    return post(to, { ...this.bearer, 'a2a-version': '1.0' }, body);
  }

  /** A stream of 32 MiB. */
  streamBody() {
    return sendBody(
      [{ text: 'x' }],
      {},
      { echo: { chunks: 64, chunkBytes: MIB / 2 } },
      'SendStreamingMessage',
    );
  }

  /** A stream of the whole log of the large task. */
  replay() {
    const body = JSON.stringify({
      jsonrpc: '2.0',
      id: 1,
      method: 'SubscribeToTask',
      params: { id: this.large },
    });
    return post('/agents/echo', { ...this.a2aHeaders, 'last-event-id': '1' }, body);
  }

  /** GetTaskRequest of the large task. */
  largeId() {
    return Buffer.concat([Buffer.from([0x12, this.large.length]), Buffer.from(this.large)]);
  }

  async request(method, to, body) {
    const headers = {
      authorization: `Bearer ${this.token}`,
      'content-type': 'application/json',
      'a2a-version': '1.0',
    };
    const { signal } = this;
    const ask = async () => {
      const response = await fetch(this.url + to, { method, headers, body, signal });
      await response.arrayBuffer();
      return response.status;
    };
    const answer = await ask().catch((error) =>
      signal?.aborted ? 'left' : (error.cause?.code ?? error.name),
    );
    this.answers.set(answer, (this.answers.get(answer) ?? 0) + 1);
  }

  putAgent(slug, config, query = '') {
    const model = { model: 'openai-compatible/m', baseUrl: `${this.peer}/v1`, prompt: 'Be brief.' };
    const agent = { name: slug, description: 'A helper.', runtime: 'llm', config: { ...model, ...config } };
    return this.request('PUT', `/v1/agents/${slug}${query}`, JSON.stringify(agent));
  }

  send(agent, text, metadata = {}, returnImmediately = false) {
    const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text }], metadata };
    const params = { message, configuration: { returnImmediately } };
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params });
    return this.request('POST', `/agents/${agent}`, body);
  }

  /** Asks again until the answer is no refusal of a limit. @returns the JSON of the answer */
  async accepted(method, path, value) {
    const headers = { ...this.bearer, 'content-type': 'application/json' };
    for (;;) {
      const response = await fetch(this.url + path, {
        method,
        headers,
        body: value && JSON.stringify(value),
      });
      const text = await response.text();
      if (response.ok) return JSON.parse(text);
      if (response.status !== 429) throw new Error(`${method} ${path}: ${response.status} ${text}`);
      await sleep(250);
    }
  }

  /** Ends all that earlier attacks have left: cancels the tasks, and waits until none is at work. */
  async clear() {
    this.servers.rest();
    for (let found = Infinity; found > 0;) {
      const begun = await this.accepted('POST', '/v1/bulk-operations', { action: 'cancel', filter: {} });
      for (let state = 'running'; state === 'running'; await sleep(250))
        ({ state, found } = await this.accepted('GET', `/v1/bulk-operations/${begun.id}`));
    }
  }

  /** Makes what an attack needs. */
  async prepare({ prepare }) {
    this.signal = undefined;
    this.servers.begin();
    await prepare?.(this);
    this.answers.clear();
    this.sent = 0;
  }

  /** Attacks for some seconds. */
  async attack({ act, isMany }, seconds) {
    this.signal = AbortSignal.timeout(seconds * 1000);
    setMaxListeners(0, this.signal);
    const caller = async () => {
      while (!this.signal.aborted) await act(this);
    };
    await Promise.all(Array.from({ length: isMany ? this.many : this.few }, caller));
    this.servers.rest();
  }
}
