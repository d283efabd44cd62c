// npm run bench:neighbours: how an attack of one tenant delays another tenant's blocking `echo`.
// Runs `npm start` once with Redis, if installed, and once on Postgres alone. One tenant sends `echo` all the time. The other
// one attacks, each attack for SECONDS (20) from ATTACKERS (4) callers. CALLERS (2) of `echo`, WORKERS (2). ATTACKS and
// DRIVERS select some (`ATTACKS=spin,flood DRIVERS=postgres`).
// The target on an idle machine: p99 below one second in every attack.
import { execFile } from 'node:child_process';
import { once, setMaxListeners } from 'node:events';
import { createServer } from 'node:http';
import { createRequire } from 'node:module';
import { cpus } from 'node:os';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { Target } from './client.mjs';
import { quantile } from './load.mjs';
import { startBaton } from './servers.mjs';

const path = (name) => fileURLToPath(new URL(`../${name}`, import.meta.url));
const number = (name, fallback) => Number(process.env[name] ?? fallback);
const names = (name, fallback) => (process.env[name] ? process.env[name].split(',') : fallback);
const SECONDS = number('SECONDS', 20);
const ATTACKERS = number('ATTACKERS', 4);
const CALLERS = number('CALLERS', 2);
const WORKERS = number('WORKERS', 2);
/** How long the platform may rest before the next attack. */
const REST_MS = 3_000;
const MIB = 1_048_576;

const { findRedisBinary } = createRequire(import.meta.url)(path('dist/apps/local/src/services/index.js'));
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
  'large schema, dry run': {
    act: (a) => a.putAgent('large', { output: { schema: a.largeSchema } }, '?dryRun=true'),
  },
  'brackets, 16 MB': { act: (a) => a.request('POST', '/agents/echo', '['.repeat(16 * MIB - 1)) },
  'model answer of newlines': {
    prepare: (a) => a.putAgent('fence', { output: { schema: { type: 'object' } } }),
    act: (a) => a.send('fence', 'newlines'),
  },
  'model answer without end': {
    prepare: (a) => a.putAgent('endless', {}),
    act: (a) => a.send('endless', 'endless'),
  },
  'tools, 30 pages of 15 MB': {
    prepare: (a) => a.putAgent('tools', { tools: { mcp: [{ name: 'desk', url: `${a.peer}/mcp` }] } }),
    act: (a) => a.send('tools', 'json'),
  },
  spin: { act: (a) => a.send('busy', 'compute', { busyMs: 30_000 }) },
  flood: {
    act: (a) =>
      Promise.all(Array.from({ length: 50 }, () => a.send('echo', 'flood', { echo: { delayMs: 50 } }, true))),
  },
};

/** A model provider and an MCP server that do what a hostile one would. */
async function startPeer() {
  const page = 'x'.repeat(15 * MIB);
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    request.on('error', () => undefined);
    response.on('error', () => undefined);
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

  constructor(url, token, peer) {
    Object.assign(this, { url, token, peer });
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
  async attack({ prepare, act }, seconds) {
    this.answers.clear();
    this.signal = undefined;
    await prepare?.(this);
    this.signal = AbortSignal.timeout(seconds * 1000);
    setMaxListeners(0, this.signal);
    const caller = async () => {
      while (!this.signal.aborted) await act(this);
    };
    await Promise.all(Array.from({ length: ATTACKERS }, caller));
  }
}

/** The figures of the neighbour while `work` goes on: ms of each blocking `echo`, sorted, and those that failed. */
async function neighbour(target, work) {
  const times = [];
  let failed = 0;
  let over = false;
  const caller = async () => {
    while (!over) {
      const start = performance.now();
      await target.send('hello').catch(() => (failed += 1));
      times.push(performance.now() - start);
    }
  };
  const callers = Array.from({ length: CALLERS }, caller);
  await work();
  over = true;
  await Promise.all(callers);
  times.sort((a, b) => a - b);
  return { times, failed };
}

function print(driver, name, { times, failed }, answers = new Map()) {
  const ms = (q) => quantile(times, q).toFixed(0).padStart(7);
  const got = [...answers].map(([answer, count]) => `${count}x ${answer}`).join(', ');
  const line = `${driver.padEnd(9)}${name.padEnd(26)}${String(times.length).padStart(6)}${ms(0.5)}${ms(0.99)}`;
  console.log(`${line}${times.at(-1).toFixed(0).padStart(7)}${String(failed).padStart(7)}  ${got}`);
}

async function measure(driver, peer) {
  const env = {
    OUTBOUND_ALLOW: '127.0.0.1',
    BATON_AGENTS_DIR: path('test/agents'),
    // Without a PATH there is no Redis to be found.
    ...(driver === 'postgres' && { PATH: '', REDIS_URL: '' }),
  };
  const baton = await startBaton({ workers: WORKERS, env });
  try {
    const cli = async (...args) => {
      const environment = { ...process.env, BATON_HOME: baton.home };
      const { stdout } = await promisify(execFile)(
        process.execPath,
        [path('bin/baton.cjs'), ...args, '--json'],
        {
          env: environment,
        },
      );
      return JSON.parse(stdout);
    };
    await cli('tenants', 'create', 'neighbour');
    const { token } = await cli('tokens', 'create', '--tenant', 'neighbour');
    const target = new Target('neighbour', `${baton.url}/agents/echo`, { authorization: `Bearer ${token}` });
    const attacker = new Attacker(baton.url, baton.token, peer.url);
    print(driver, 'no attack', await neighbour(target, () => sleep(SECONDS * 1000)));
    for (const name of names('ATTACKS', Object.keys(ATTACKS))) {
      const attack = ATTACKS[name];
      if (!attack) throw new Error(`There is no attack "${name}": ${Object.keys(ATTACKS).join(', ')}`);
      print(driver, name, await neighbour(target, () => attacker.attack(attack, SECONDS)), attacker.answers);
      await sleep(REST_MS);
    }
    target.close();
  } finally {
    await baton.stop();
  }
}

const peer = await startPeer();
console.log(
  `${cpus().length} cores, ${SECONDS} s each, ${ATTACKERS} attackers, ${CALLERS} callers, ${WORKERS} workers`,
);
console.log(
  'driver   attack                     calls p50 ms p99 ms max ms failed  the attacker was answered',
);
try {
  for (const driver of names('DRIVERS', findRedisBinary() ? ['redis', 'postgres'] : ['postgres'])) {
    await measure(driver, peer);
  }
} finally {
  peer.stop();
}
