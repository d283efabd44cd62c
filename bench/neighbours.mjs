// npm run bench:neighbours: how an attack of one tenant delays another tenant's blocking `echo`, and its calls of a remote agent
// whose host has a name. Runs `npm start` once with Redis, if installed, and once on Postgres alone. One tenant calls all the
// time. The other one attacks, each attack for SECONDS (20) from ATTACKERS (4) callers; attacks with sockets and names have
// MANY_ATTACKERS (60). The attacker has the limits that a tenant has by default, or none (LIMITS=none). CALLERS (2) of `echo`,
// WORKERS (2). ATTACKS and DRIVERS select some (`ATTACKS=spin,flood DRIVERS=postgres`).
// The targets on an idle machine, in every attack: p99 of `echo` below one second, p50 of the remote agent at most twice that
// without an attack, and at most 400 MB of memory (RSS) in the API process.
import { execFile } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { connect } from 'node:net';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Worker } from 'node:worker_threads';
import { gzipSync } from 'node:zlib';
import { NO_LIMITS } from './limits.mjs';
import { usageOf } from './counters.mjs';
import { quantile } from './load.mjs';
import { startBaton } from './servers.mjs';
import {
  grpcCalls,
  gzipBomb,
  halfSent,
  largeHealth,
  post,
  silentConnections,
  unread,
} from './socket-attacks.mjs';

const path = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const number = (name, fallback) => Number(process.env[name] ?? fallback);
const names = (name, fallback) => (process.env[name] ? process.env[name].split(',') : fallback);
const SECONDS = number('SECONDS', 20);
const ATTACKERS = number('ATTACKERS', 4);
const MANY_ATTACKERS = number('MANY_ATTACKERS', 60);
const CALLERS = number('CALLERS', 2);
const WORKERS = number('WORKERS', 2);
/** How long the platform may rest before the next attack. */
const REST_MS = 3_000;
const MIB = 1_048_576;

const require = createRequire(import.meta.url);
const { findRedisBinary } = require(path('dist/apps/local/src/services/index.js'));
require(path('test/support/load-typescript.js'));
const { NameServer } = require(path('test/support/name-server.ts'));
/** Of an agent at a name. No name server answers for any other name. */
const FRIEND = 'friend.example';
/** Guests reach the public agents of the attacker at these hosts. */
const [GUESTS, GUESTS_OF_ECHO] = ['guests.example', 'echo.example'];
const sleep = (ms) => new Promise((done) => setTimeout(done, ms));

/** A schema whose validation takes exponential time, in a few bytes. */
function nestedSchema(depth) {
  const $defs = { s0: { type: 'object' } };
  for (let i = 1; i <= depth; i++) {
    const $ref = `#/$defs/s${i - 1}`;
    $defs[`s${i}`] = { allOf: [{ $ref }, { not: { not: { $ref } } }, { $ref }] };
  }
  return { type: 'object', $ref: `#/$defs/s${depth}`, $defs };
}

/** A schema of some 850 KB. */
function largeSchema() {
  const property = (i) => [`property${i}`, { type: 'string', pattern: `^(a|b${i})*$`, minLength: i % 7 }];
  return {
    type: 'object',
    properties: Object.fromEntries(Array.from({ length: 12_000 }, (_, i) => property(i))),
  };
}

/** What each attack sends, again and again. A refusal is an answer as any other. */
const ATTACKS = {
  'nested schema': {
    prepare: (a) => a.putAgent('nested', { output: { schema: nestedSchema(28) } }),
    act: (a) => a.send('nested', 'json'),
  },
  'large schema: dry run': {
    act: (a) => a.putAgent('large', { output: { schema: a.largeSchema } }, '?dryRun=true'),
  },
  'brackets: 16 MB': { act: (a) => a.request('POST', '/agents/echo', '['.repeat(16 * MIB - 1)) },
  'model answer of newlines': {
    prepare: (a) => a.putAgent('fence', { output: { schema: { type: 'object' } } }),
    act: (a) => a.send('fence', 'newlines'),
  },
  'model answer without end': {
    prepare: (a) => a.putAgent('endless', {}),
    act: (a) => a.send('endless', 'endless'),
  },
  'tools: 30 pages of 15 MB': {
    prepare: (a) => a.putAgent('tools', { tools: { mcp: [{ name: 'desk', url: `${a.peer}/mcp` }] } }),
    act: (a) => a.send('tools', 'json'),
  },
  spin: { act: (a) => a.send('busy', 'compute', { busyMs: 30_000 }) },
  flood: {
    act: (a) =>
      Promise.all(Array.from({ length: 50 }, () => a.send('echo', 'flood', { echo: { delayMs: 50 } }, true))),
  },
  'silent names: files of guests': {
    isMany: true,
    prepare: (a) => a.putAgent('reader', {}),
    act: (a) => a.ask(post('/', { host: GUESTS, 'a2a-version': '1.0' }, sendBody(silentFiles()))),
  },
  'silent names: files': {
    isMany: true,
    prepare: (a) => a.putAgent('reader', {}),
    act: (a) => a.request('POST', '/agents/reader', sendBody(silentFiles())),
  },
  'silent names: remote agents': {
    isMany: true,
    prepare: (a) => Promise.all(names16.map((name) => a.putRemote(name, `http://${name}.example`))),
    act: (a) => a.send(pick(names16), 'hello', {}, true).then(() => sleep(200)),
  },
  'silent names: webhooks': {
    isMany: true,
    act: (a) => a.request('POST', '/v1/webhooks', JSON.stringify({ url: `https://${silentName()}/` })),
  },
  'silent names: push configs': {
    isMany: true,
    act: (a) =>
      a.request(
        'POST',
        '/agents/echo',
        sendBody([{ text: 'x' }], { taskPushNotificationConfig: { url: `https://${silentName()}/` } }),
      ),
  },
  'gRPC: large health checks': { isMany: true, act: (a) => a.note(largeHealth(a.grpc, a.signal)) },
  'gRPC: gzip to reflection': { isMany: true, act: (a) => a.note(gzipBomb(a.grpc, a.signal)) },
  'gRPC: gzip with a token': {
    isMany: true,
    act: (a) =>
      a.note(
        grpcCalls(
          a.grpc,
          { path: '/lf.a2a.v1.A2AService/GetTask', headers: a.bearer, message: a.bomb, isCompressed: true },
          1,
          a.signal,
        ),
      ),
  },
  'half-sent bodies': {
    isMany: true,
    act: (a) => a.note(halfSent(a.url, '/agents/echo', a.bearer, a.signal)),
  },
  'half-sent bodies of guests': {
    isMany: true,
    act: (a) => a.note(halfSent(a.url, '/', { host: GUESTS_OF_ECHO }, a.signal, 1)),
  },
  'half-sent: management port': {
    isMany: true,
    act: (a) => a.note(halfSent(a.management, '/v1/admin/tenants', {}, a.signal)),
  },
  'silent connections': {
    isMany: true,
    act: (a) => a.note(silentConnections([a.url, a.grpc], `127.0.1.${1 + (a.turn++ % 250)}`, 50, a.signal)),
  },
  'unread answers': {
    isMany: true,
    prepare: (a) => a.makeLarge(),
    act: (a) => a.note(unread(a.url, a.largeReads('/agents/echo').repeat(20), a.signal)),
  },
  'unread streams': {
    isMany: true,
    prepare: (a) => a.makeLarge(),
    act: (a) => a.note(unread(a.url, post('/agents/echo', a.a2aHeaders, a.streamBody()), a.signal)),
  },
  'unread replays': {
    isMany: true,
    prepare: (a) => a.makeLargeEvents(),
    act: (a) => a.note(unread(a.url, a.replay(), a.signal)),
  },
  'unread answers of gRPC': {
    isMany: true,
    prepare: (a) => a.makeLarge(),
    act: (a) =>
      a.note(
        grpcCalls(
          a.grpc,
          {
            path: '/lf.a2a.v1.A2AService/GetTask',
            headers: { ...a.bearer, 'baton-agent': 'echo' },
            message: a.largeId(),
            isUnread: true,
          },
          20,
          a.signal,
        ),
      ),
  },
};

const names16 = Array.from({ length: 16 }, (_, i) => `silent-${i}`);
const pick = (list) => list[Math.floor(Math.random() * list.length)];
const silentName = () => `n${Math.random().toString(36).slice(2)}.example`;
const silentFiles = () => [
  { text: 'json' },
  ...Array.from({ length: 20 }, () => ({ url: `http://${silentName()}/a.txt`, mediaType: 'text/plain' })),
];

/** The body of a message with these parts. */
function sendBody(parts, configuration = {}, metadata = {}, method = 'SendMessage') {
  const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts, metadata };
  return JSON.stringify({ jsonrpc: '2.0', id: 1, method, params: { message, configuration } });
}

/** A model provider and an MCP server that do what a hostile one would. */
async function startPeer() {
  const page = 'x'.repeat(15 * MIB);
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    request.on('error', () => undefined);
    response.on('error', () => undefined);
    if (request.headers.host?.startsWith(FRIEND)) return answerAsAgent(request, body, response);
    if (request.url.startsWith('/mcp')) return answerMcp(body, response, page);
    const said = body.includes('newlines') ? '```' + '\n'.repeat(100_000) + 'x' : '{}';
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    const say = (delta, finish_reason = null) =>
      response.write(
        `data: ${JSON.stringify({ id: 'c', object: 'chat.completion.chunk', created: 0, model: 'm', choices: [{ index: 0, delta, finish_reason }] })}\n\n`,
      );
    if (body.includes('endless')) {
      const large = 'y'.repeat(MIB);
      while (!response.destroyed) {
        if (!say({ role: 'assistant', content: large })) await isRead(response);
      }
      return;
    }
    say({ role: 'assistant', content: said });
    say({}, 'stop');
    response.end('data: [DONE]\n\n');
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    url: `http://127.0.0.1:${server.address().port}`,
    stop: () => {
      server.close();
      server.closeAllConnections();
    },
  };
}

/** Until the reader has taken what was written, or has left. */
async function isRead(response) {
  const left = new AbortController();
  const leave = () => left.abort();
  response.once('close', leave);
  await once(response, 'drain', { signal: left.signal }).catch(() => undefined);
  response.off('close', leave);
}

/** An agent of A2A 1.0 that answers at once. */
function answerAsAgent(request, body, response) {
  const url = `http://${request.headers.host}`;
  const card = {
    name: 'Friend',
    description: 'Answers.',
    version: '1',
    capabilities: { streaming: false },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
    supportedInterfaces: [{ url: `${url}/rpc`, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
  };
  const task = { id: crypto.randomUUID(), contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } };
  response.writeHead(200, { 'content-type': 'application/json' });
  if (request.method === 'GET') return response.end(JSON.stringify(card));
  response.end(JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(body).id, result: { task } }));
}

function answerMcp(body, response, page) {
  let call = {};
  try {
    call = JSON.parse(body);
  } catch {
    // A GET for a stream.
  }
  if (call.id === undefined) return response.writeHead(call.method ? 202 : 405).end();
  const cursor = Number(call.params?.cursor ?? 0);
  const tool = { name: `tool${cursor}`, description: page, inputSchema: { type: 'object' } };
  const result =
    call.method === 'initialize'
      ? {
          protocolVersion: call.params.protocolVersion,
          capabilities: { tools: {} },
          serverInfo: { name: 'm', version: '1' },
        }
      : { tools: [tool], ...(cursor < 30 && { nextCursor: String(cursor + 1) }) };
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(JSON.stringify({ jsonrpc: '2.0', id: call.id, result }));
}

/** The tenant that attacks. Its calls end with the attack; whatever they are answered is noted. */
class Attacker {
  answers = new Map();
  largeSchema = largeSchema();

  /** Counts connections, for addresses of their own. */
  turn = 0;
  bomb = gzipSync(Buffer.alloc(15 * MIB));

  /** @param ports URLs of the ports of the API: `url`, `grpc`, `management` */
  constructor(ports, token, peer) {
    Object.assign(this, { ...ports, token, peer, bearer: { authorization: `Bearer ${token}` } });
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
    const answer = await fetch(this.url + to, { method, headers, body, signal: this.signal }).then(
      async (response) => {
        await response.arrayBuffer();
        return response.status;
      },
      (error) => (this.signal?.aborted ? 'left' : (error.cause?.code ?? error.name)),
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

  /** Attacks for some seconds. */
  async attack({ prepare, act, isMany }, seconds) {
    this.answers.clear();
    this.signal = undefined;
    await prepare?.(this);
    this.signal = AbortSignal.timeout(seconds * 1000);
    setMaxListeners(0, this.signal);
    const caller = async () => {
      while (!this.signal.aborted) await act(this);
    };
    await Promise.all(Array.from({ length: isMany ? MANY_ATTACKERS : ATTACKERS }, caller));
  }
}

/** Figures of the neighbour while `work` goes on, and the CPU that each process takes, in percent of a core. */
async function neighbour(thread, processes, work) {
  const usage = () => ({ at: performance.now(), cpu: cpuOf(processes()) });
  const before = usage();
  thread.postMessage('begin');
  await work();
  const after = usage();
  const figures = once(thread, 'message');
  thread.postMessage('end');
  const percent = Object.entries(after.cpu).map(([name, ms]) => [
    name,
    (100 * (ms - (before.cpu[name] ?? 0))) / (after.at - before.at),
  ]);
  return { ...(await figures)[0], cpu: percent };
}

/** CPU time in ms of the processes of Baton, its services, and of this process: attackers, their servers, the neighbour. */
function cpuOf(processes) {
  const { user, system } = process.cpuUsage();
  const cpu = { api: 0, workers: 0, services: 0, bench: (user + system) / 1000 };
  for (const [name, pid] of Object.entries(processes)) {
    const kind = name === 'api' ? name : name.startsWith('worker') ? 'workers' : 'services';
    cpu[kind] += usageOf(pid).cpu;
  }
  return cpu;
}

function print(driver, name, { echo, friend, megabytes, cpu }, answers = new Map()) {
  const ms = (times, q) => (quantile(times, q) ?? 0).toFixed(0).padStart(7);
  const got = [...answers].map(([answer, count]) => `${count}x ${answer}`).join(', ');
  const columns = [echo, friend].map(
    ({ times, failed }) =>
      `${String(times.length).padStart(6)}${ms(times, 0.5)}${ms(times, 0.99)}${times.at(-1).toFixed(0).padStart(7)}${String(failed).padStart(5)}`,
  );
  const used = cpu.map(([, percent]) => percent.toFixed(0).padStart(9)).join('');
  console.log(
    `${driver.padEnd(9)}${name.padEnd(31)}${columns.join(' |')} |${megabytes.toFixed(0).padStart(6)} |${used}  ${got}`,
  );
}

async function measure(driver, peer, nameServer) {
  const env = {
    OUTBOUND_ALLOW: '127.0.0.1',
    OUTBOUND_DNS: nameServer.address,
    BATON_AGENTS_DIR: path('test/agents'),
    // Without a PATH there is no Redis to be found.
    ...(driver === 'postgres' && { PATH: '', REDIS_URL: '' }),
  };
  const limits = process.env.LIMITS === 'none' ? NO_LIMITS : {};
  const baton = await startBaton({ workers: WORKERS, env, limits });
  try {
    const cli = async (...args) => {
      const environment = { ...process.env, BATON_HOME: baton.home };
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [path('bin/baton.cjs'), ...args, '--json'],
        { env: environment },
      );
      return JSON.parse(stdout);
    };
    await cli('tenants', 'create', 'neighbour');
    const { token } = await cli(
      'tokens',
      'create',
      '--tenant',
      'neighbour',
      '--scopes',
      'agents:call,tasks:read,agents:write',
    );
    // Its calls are measured, not its limit.
    await cli('tenants', 'limits', 'neighbour', '--requests-per-second', 'none');
    const ports = { url: baton.url, grpc: baton.grpcUrl, management: new URL(baton.metricsUrl).origin };
    const friendUrl = `http://${FRIEND}:${new URL(peer.url).port}`;
    await new Attacker(ports, token, peer.url).putRemote('friend', friendUrl);
    const workerData = { url: baton.url, token, metricsUrl: baton.metricsUrl, callers: CALLERS };
    const victim = new Worker(new URL('./neighbour-thread.mjs', import.meta.url), { workerData });
    const attacker = new Attacker(ports, baton.token, peer.url);
    await attacker.putAgent('reader', {});
    for (const [host, agent] of [
      [GUESTS, 'reader'],
      [GUESTS_OF_ECHO, 'echo'],
    ])
      await cli('hosts', 'bind', host, '--tenant', 'demo', '--agent', agent, '--public');
    print(driver, 'no attack', await neighbour(victim, baton.processes, () => sleep(SECONDS * 1000)));
    for (const name of names('ATTACKS', Object.keys(ATTACKS))) {
      const attack = ATTACKS[name];
      if (!attack) throw new Error(`There is no attack "${name}": ${Object.keys(ATTACKS).join(', ')}`);
      print(
        driver,
        name,
        await neighbour(victim, baton.processes, () => attacker.attack(attack, SECONDS)),
        attacker.answers,
      );
      await sleep(REST_MS);
    }
    await victim.terminate();
  } finally {
    await baton.stop();
  }
}

const peer = await startPeer();
const nameServer = await new NameServer({ [FRIEND]: { a: ['127.0.0.1'] }, '*': 'silent' }).start();
console.log(
  `${cpus().length} cores, ${SECONDS} s each, ${ATTACKERS} or ${MANY_ATTACKERS} attackers, ${CALLERS} callers, ${WORKERS} workers`,
);
const columns = ' calls p50 ms p99 ms max ms fail';
console.log(
  `${'driver   attack'.padEnd(40)}${columns} |${columns} |   RSS | CPU % api  workers services    bench  the attacker was answered`,
);
try {
  for (const driver of names('DRIVERS', findRedisBinary() ? ['redis', 'postgres'] : ['postgres'])) {
    await measure(driver, peer, nameServer);
  }
} finally {
  peer.stop();
  await nameServer.stop();
}
