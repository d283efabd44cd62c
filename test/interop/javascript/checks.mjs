// What is asked of every client of the JavaScript SDK, whatever its version and binding. `sdk` is one of sdk-1.0.mjs and
// sdk-0.3.mjs: it makes the calls, and returns results in the plain words of this file.
import assert from 'node:assert/strict';
import { createHash, randomUUID } from 'node:crypto';
import { on, once } from 'node:events';
import { createServer } from 'node:http';
import { text as readText } from 'node:stream/consumers';
import { createRemoteJWKSet, jwtVerify } from 'jose';

/** Longer than any check lasts, so that the task is there until it is canceled. */
const LONG = { chunks: 100_000, delayMs: 100 };

const texts = ({ parts }) => parts.flatMap(({ text }) => text ?? []);

function omitName(part) {
  const { filename, ...rest } = part;
  return filename === undefined ? part : rest;
}

/** The error that a call ends with. */
async function refusal(call) {
  const answer = await call.then(
    (result) => ({ result }),
    (error) => ({ error }),
  );
  assert.ok(answer.error, `expected an error, got ${JSON.stringify(answer.result)}`);
  return answer.error;
}

/** A stream of a long turn, read until its first chunk. */
async function begun(sdk) {
  const stream = sdk.stream([{ text: 'long' }], { echo: LONG });
  const events = [];
  do events.push((await stream.next()).value);
  while (events.at(-1)?.kind === 'task' || events.at(-1)?.kind === 'status');
  assert.deepEqual([events[0].kind, events.at(-1)?.kind], ['task', 'artifact']);
  return { id: events[0].id, stream };
}

async function last(stream) {
  let event;
  for await (event of stream);
  return event;
}

/** A receiver of push notifications, and what it gets: all of it verified. */
async function startReceiver(origin, version) {
  const server = createServer().listen(0, '127.0.0.1');
  await once(server, 'listening');
  const url = `http://127.0.0.1:${server.address().port}/`;
  const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', origin));
  async function* bodies() {
    for await (const [request, response] of on(server, 'request')) {
      const body = await readText(request);
      response.end();
      const { headers } = request;
      assert.deepEqual([headers['a2a-version'], headers['x-a2a-notification-token']], [version, 'a-token']);
      const expected = { audience: new URL(url).origin, subject: headers['webhook-id'] };
      const { payload } = await jwtVerify(headers['baton-signature'], keys, expected);
      assert.equal(payload.request_body_sha256, createHash('sha256').update(body).digest('hex'));
      yield body;
    }
  }
  return { url, bodies: bodies(), close: () => server.close() };
}

/** Each kind of character: controls, those that end lines somewhere, and those outside of the basic plane. */
const CHARACTERS = [
  '\0',
  '\n',
  '\r',
  '\x1c',
  '\x85',
  '\u2028',
  '\u2029',
  '\ufeff',
  '\ufffe',
  '"',
  '\\',
  'é',
  '漢',
  '😀',
  '\u{10ffff}',
];

/** Numbers below `max` that are the same in every run. */
function drawing(seed) {
  let state = seed;
  return (max) => {
    state = (state * 48_271) % 2_147_483_647;
    return state % max;
  };
}

const anyText = (draw) => Array.from({ length: draw(8) }, () => CHARACTERS[draw(CHARACTERS.length)]).join('');

function anyValue(draw, depth = 3) {
  const scalars = [null, true, false, draw(2 ** 31), -draw(2 ** 31) / 7 - 1, 1e300, 5e-324, anyText(draw)];
  const form = depth === 0 ? 0 : draw(4);
  if (form < 2) return scalars[draw(scalars.length)];
  if (form === 2) return Array.from({ length: draw(4) }, () => anyValue(draw, depth - 1));
  return anyStruct(draw, depth);
}

const anyStruct = (draw, depth = 3) =>
  Object.fromEntries(Array.from({ length: draw(4) }, () => [anyText(draw), anyValue(draw, depth - 1)]));

/** Data of 0.3 are objects. */
function anyPart(draw, sdk) {
  const bytes = Buffer.from(Array.from({ length: draw(9) }, () => draw(256))).toString('base64');
  const file = { bytes, mediaType: 'a/b', filename: `x${anyText(draw)}` };
  const data = sdk.version === '1.0' ? anyValue(draw) : anyStruct(draw);
  return [{ text: anyText(draw) }, { data }, sdk.forgetsFileNames ? omitName(file) : file][draw(3)];
}

export const CHECKS = {
  async card(sdk, { baseUrl }) {
    const card = await sdk.card();
    assert.equal(card.name, 'Interop');
    assert.equal(card.capabilities.streaming, true);
    assert.ok(sdk.urls(card).every((url) => url.includes(new URL(baseUrl).hostname)));
    assert.match((await sdk.extendedCard()).description, /callers with a token more/);
  },

  async 'signed card'(sdk, { origin }) {
    const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', origin));
    await sdk.verifyCard(async (kid, jku) => {
      assert.equal(jku, `${origin}/.well-known/jwks.json`);
      return keys({ alg: 'ES256', kid });
    });
  },

  async send(sdk) {
    const task = await sdk.send([{ text: 'hello' }]);
    assert.deepEqual([task.state, texts(task)], ['completed', ['hello']]);
  },

  async stream(sdk) {
    const events = [];
    for await (const event of sdk.stream([{ text: 'hi' }], { echo: { chunks: 3 } })) events.push(event);
    const kinds = events.map(({ kind }) => kind);
    assert.deepEqual(kinds, ['task', 'status', 'artifact', 'artifact', 'artifact', 'status']);
    assert.equal(events.at(-1).state, 'completed');
  },

  async get(sdk) {
    const { id } = await sdk.send([{ text: 'get me' }]);
    const task = await sdk.get(id);
    assert.deepEqual([task.id, task.state, texts(task)], [id, 'completed', ['get me']]);
    assert.deepEqual(task.history, ['user']);
  },

  async list(sdk) {
    const contextId = randomUUID();
    for (const text of ['a', 'b', 'c']) await sdk.send([{ text }], { contextId });
    const first = await sdk.list({ contextId, pageSize: 2 });
    const second = await sdk.list({ contextId, pageSize: 2, pageToken: first.nextPageToken });
    assert.deepEqual([...first.tasks, ...second.tasks].flatMap(texts), ['c', 'b', 'a']);
    assert.equal(second.nextPageToken, '');
  },

  async cancel(sdk) {
    const { id, stream } = await begun(sdk);
    assert.equal((await sdk.cancel(id)).state, 'canceled');
    assert.equal((await last(stream)).state, 'canceled');
  },

  async subscribe(sdk) {
    const { id, stream } = await begun(sdk);
    const other = sdk.subscribe(id);
    const { value } = await other.next();
    assert.deepEqual([value.kind, value.id], ['task', id]);
    assert.equal((await other.next()).value.kind, 'artifact');
    await sdk.cancel(id);
    assert.equal((await last(other)).state, 'canceled');
    await last(stream);
  },

  async 'multi-turn'(sdk) {
    const asked = await sdk.send([{ text: 'first' }], { echo: { askInput: true } });
    assert.equal(asked.state, 'input-required');
    const { id: taskId, contextId } = asked;
    const answered = await sdk.send([{ text: 'second' }], { taskId, contextId });
    assert.deepEqual([answered.id, answered.state, texts(answered)], [taskId, 'completed', ['second']]);
    assert.deepEqual(answered.history, ['user', 'agent', 'user']);
  },

  async 'files and data'(sdk) {
    const all = [
      { bytes: 'AAEC/w==', mediaType: 'application/octet-stream', filename: 'four.bin' },
      { url: 'https://example.com/report.pdf', mediaType: 'application/pdf', filename: 'report.pdf' },
      { data: { n: 1.5, list: ['ä', true, null], nested: { empty: {} } } },
      { text: 'and text' },
    ];
    const parts = sdk.forgetsFileNames ? all.map((part) => omitName(part)) : all;
    const task = await sdk.send(parts);
    assert.deepEqual(task.parts, parts);
    assert.deepEqual((await sdk.get(task.id)).parts, parts);
  },

  // Whatever the specification allows comes back as it was sent.
  async 'any values'(sdk, { without }) {
    const draw = drawing(1);
    const contextId = randomUUID();
    const sent = Array.from({ length: 4 }, () => Array.from({ length: 30 }, () => anyPart(draw, sdk)));
    for (const parts of sent) {
      const task = await sdk.send(parts, { contextId });
      assert.deepEqual(task.parts, parts);
      assert.deepEqual((await sdk.get(task.id)).parts, parts);
      assert.equal((await last(sdk.stream(parts))).state, 'completed');
    }
    if (without.includes('list')) return;
    const { tasks } = await sdk.list({ contextId, pageSize: 10 });
    assert.deepEqual(
      tasks.map(({ parts }) => parts),
      sent.toReversed(),
    );
  },

  // Earlier releases have stored half of a character.
  async 'old text'(sdk) {
    const contextId = process.env.BATON_OLD_CONTEXT;
    if (contextId === undefined) return;
    const { tasks } = await sdk.list({ contextId, pageSize: 10 });
    assert.deepEqual(tasks.map(texts), [['half \ufffd']]);
    assert.deepEqual(texts(await sdk.get(tasks[0].id)), ['half \ufffd']);
  },

  async push(sdk, { origin }) {
    const receiver = await startReceiver(origin, sdk.version);
    try {
      const { id: taskId, contextId } = await sdk.send([{ text: 'first' }], { echo: { askInput: true } });
      const config = { id: 'mine', url: receiver.url };
      assert.deepEqual(await sdk.setConfig(taskId, { ...config, token: 'a-token' }), config);
      assert.deepEqual(await sdk.getConfig(taskId, 'mine'), config);
      assert.deepEqual(await sdk.listConfigs(taskId), [config]);
      await sdk.send([{ text: 'second' }], { taskId, contextId });
      const states = [];
      while (states.at(-1) !== 'completed') {
        const { value: body } = await receiver.bodies.next();
        const { state = states.at(-1) } = await sdk.pushed(body);
        if (state !== states.at(-1)) states.push(state);
      }
      assert.deepEqual(states, ['submitted', 'working', 'completed']);
      await sdk.deleteConfig(taskId, 'mine');
      assert.deepEqual(await sdk.listConfigs(taskId), []);
    } finally {
      receiver.close();
    }
  },

  async 'unknown task'(sdk) {
    assert.equal(sdk.reason(await refusal(sdk.get(randomUUID()))), 'TASK_NOT_FOUND');
    const stream = sdk.subscribe(randomUUID());
    assert.equal(sdk.reason(await refusal(stream.next())), 'TASK_NOT_FOUND');
  },

  async 'task that cannot be canceled'(sdk) {
    const { id } = await sdk.send([{ text: 'done' }]);
    assert.equal(sdk.reason(await refusal(sdk.cancel(id))), 'TASK_NOT_CANCELABLE');
  },

  async 'bad request'(sdk) {
    assert.equal(sdk.reason(await refusal(sdk.send([]))), 'INVALID_PARAMS');
    assert.equal(sdk.reason(await refusal(sdk.stream([]).next())), 'INVALID_PARAMS');
  },
};
