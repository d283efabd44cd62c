import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { KEEPS_CONNECTIONS } from '../../../test/support/server-options.js';
import { EXIT } from './exit.js';
import { baton } from './operator.fixture.js';

type Json = Record<string, unknown>;
interface Asked {
  method: string;
  path: string;
  body: unknown;
}

const ID = '019abf5c-22e4-7d7a-9d4a-2f7c0e1b9a11';
const SECRET = 'whsec_c2VjcmV0';
const WEBHOOK = {
  id: ID,
  url: 'https://receiver.example/baton',
  agents: ['helper'],
  states: null,
  enabled: true,
  created_by: 'token:t',
  created_at: '2026-11-22T15:00:00.000Z',
  updated_at: '2026-11-22T15:00:00.000Z',
};

let server: Server;
let url: string;
let asked: Asked[];
/** What the server answers next; unset = the webhook. */
let answer: { status?: number; body?: unknown };

beforeAll(async () => {
  server = createServer(KEEPS_CONNECTIONS, (request, response) => void serve(request, response));
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${String((server.address() as AddressInfo).port)}`;
});
beforeEach(() => {
  [asked, answer] = [[], {}];
});
afterAll(() => {
  server.closeAllConnections();
  server.close();
});

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  const { method = '', url: path = '', headers } = request;
  expect(headers.authorization).toBe('Bearer secret');
  asked.push({ method, path, body: text === '' ? undefined : (JSON.parse(text) as Json) });
  const { status = 200, body = WEBHOOK } = answer;
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(status === 204 ? undefined : JSON.stringify(body));
}

/** One command as a tenant, and what it has asked the server. */
async function webhooks(line: string) {
  const seen = await baton(`webhooks ${line}`, { BATON_URL: url, BATON_TOKEN: 'secret' });
  return { ...seen, asked };
}

const PATH = `/v1/webhooks/${ID}`;

describe('baton webhooks', () => {
  it('create sends the given options, and prints the secret', async () => {
    answer = { status: 201, body: { ...WEBHOOK, secret: SECRET } };
    const line = 'create https://receiver.example/baton --agent helper index --state completed failed';
    expect(await webhooks(line)).toEqual({
      code: 0,
      err: '',
      out: `Webhook ${ID} is created. Its secret, which is never shown again:\n${SECRET}`,
      asked: [
        {
          method: 'POST',
          path: '/v1/webhooks',
          body: {
            url: 'https://receiver.example/baton',
            agents: ['helper', 'index'],
            states: ['completed', 'failed'],
          },
        },
      ],
    });
  });

  it('list follows the pages, and show has the rest', async () => {
    answer = { body: { webhooks: [], next_cursor: null } };
    expect((await webhooks('list')).err).toContain('No webhooks yet: npx baton webhooks create https://…');
    answer = {
      body: { webhooks: [WEBHOOK, { ...WEBHOOK, agents: null, enabled: false }], next_cursor: null },
    };
    expect((await webhooks('list')).out).toMatch(
      /^ID +URL +AGENTS +STATES +STATE\n019abf5c\S+ +https:\/\/receiver\.example\/baton +helper +all +enabled\n019abf5c\S+ +\S+ +all +all +disabled$/,
    );
    answer = {};
    expect((await webhooks(`show ${ID}`)).out).toMatch(
      /id +019abf5c[^]*\nagents +helper\nstates +all\nstate +enabled\ncreated +.* by token:t$/,
    );
    expect(asked.at(-1)).toMatchObject({ method: 'GET', path: PATH });
    expect(JSON.parse((await webhooks(`show ${ID} --json`)).out)).toEqual(WEBHOOK);
  });

  it.each([
    [`set ${ID} --to https://other.example/`, { url: 'https://other.example/' }, 'is changed'],
    [`set ${ID} --state failed --all`, { agents: null, states: ['failed'] }, 'is changed'],
    [`set ${ID} --agent echo`, { agents: ['echo'] }, 'is changed'],
    [`disable ${ID}`, { enabled: false }, 'is disabled'],
    [`enable ${ID}`, { enabled: true }, 'is enabled'],
  ])('%s changes nothing else', async (line, body, done) => {
    expect(await webhooks(line)).toEqual({
      code: 0,
      err: '',
      out: `Webhook ${ID} ${done}.`,
      asked: [{ method: 'PATCH', path: PATH, body }],
    });
  });

  it('rotate prints the new secret, and says how long the one before signs', async () => {
    answer = { body: { ...WEBHOOK, secret: SECRET } };
    expect((await webhooks(`rotate ${ID}`)).out).toBe(
      `The new secret of webhook ${ID}, which is never shown again:\n${SECRET}`,
    );
    await webhooks(`rotate ${ID} --overlap-hours 0.5`);
    expect(asked.map(({ path, body }) => [path, body])).toEqual([
      [`${PATH}/rotate`, { overlap_seconds: 86_400 }],
      [`${PATH}/rotate`, { overlap_seconds: 1_800 }],
    ]);
  });

  it('test prints the answer of the receiver, and fails if it is a refusal', async () => {
    answer = { body: { delivered: true, status: 204, error: null, duration_ms: 7 } };
    expect(await webhooks(`test ${ID}`)).toMatchObject({
      code: 0,
      out: 'The receiver has answered HTTP 204 after 7 ms.',
      asked: [{ method: 'POST', path: `${PATH}/test` }],
    });
    answer = { body: { delivered: false, status: 500, error: null, duration_ms: 7 } };
    expect(await webhooks(`test ${ID}`)).toMatchObject({
      code: EXIT.failed,
      err: 'The receiver has not taken it: it answered HTTP 500.',
    });
    answer = { body: { delivered: false, status: null, error: 'it refused the connection', duration_ms: 7 } };
    expect((await webhooks(`test ${ID}`)).err).toBe(
      'The receiver has not taken it: it refused the connection.',
    );
  });

  it('deliveries lists the requests to the receiver and its answers', async () => {
    const delivery = {
      task_id: 'task-1',
      agent_id: 'helper',
      state: 'retrying',
      status: 500,
      error: null,
      failures: 3,
      failing_since: '2026-11-22T15:00:00.000Z',
      next_at: '2026-11-22T16:00:00.000Z',
      delivered_event: 1,
      waiting: 2,
    };
    answer = { body: { deliveries: [delivery], next_cursor: null } };
    const { out, asked: calls } = await webhooks(`deliveries ${ID}`);
    expect(out).toMatch(/task-1 +retrying +HTTP 500 +3 +2026-11-2\d.* +2/);
    expect(calls[0]!.path).toMatch(`${PATH}/deliveries?`);
    const refused = { ...delivery, status: null, error: 'it refused the connection', next_at: null };
    answer = { body: { deliveries: [refused], next_cursor: null } };
    expect((await webhooks(`deliveries ${ID}`)).out).toMatch(/retrying +it refused the connection +3 +– +2/);
    const request = {
      method: 'POST',
      event: 5,
      headers: { 'webhook-id': 'x' },
      body: '{"type": 1}',
      bytes: 11,
    };
    const made = {
      at: '2026-11-22T15:00:00.000Z',
      duration_ms: 12,
      status: 500,
      error: 'it answered HTTP 500',
    };
    const tries = [{ ...made, request, answer: 'no room\nfor you' }];
    answer = { body: { deliveries: [{ ...refused, tries }], next_cursor: null } };
    const one = await webhooks(`deliveries ${ID} --task task-1`);
    expect(one.asked.at(-1)!.path).toMatch('task=task-1');
    expect(one.out).toMatch(/HTTP 500 after 12 ms/);
    expect(one.out).toContain(
      '> POST, event 5, 11 bytes\n> webhook-id: x\n> {"type": 1}\n< no room\n< for you',
    );
    answer = { body: { deliveries: [], next_cursor: null } };
    expect((await webhooks(`deliveries ${ID}`)).err).toBe('No task yet whose events the webhook gets.');
    expect(await webhooks(`deliveries ${ID} --limit none`)).toMatchObject({ code: EXIT.usage });
  });

  it('redeliver prints the task whose events are delivered now', async () => {
    answer = { body: { tasks: ['task-1', 'task-2'] } };
    expect(await webhooks(`redeliver ${ID}`)).toMatchObject({
      code: 0,
      out: 'The events of these tasks are delivered now:\ntask-1\ntask-2',
      asked: [{ method: 'POST', path: `${PATH}/redeliver` }],
    });
    answer = { body: { tasks: [] } };
    const one = await webhooks(`redeliver ${ID} --task task-1`);
    expect(one.asked.at(-1)!.path).toBe(`${PATH}/redeliver?task=task-1`);
    expect(one.out).toBe('There is nothing to deliver again, or a request is under way.');
  });

  it('remove removes', async () => {
    answer = { status: 204 };
    expect(await webhooks(`remove ${ID}`)).toMatchObject({
      code: 0,
      out: `Webhook ${ID} is removed.`,
      asked: [{ method: 'DELETE', path: PATH }],
    });
  });

  it('sends no request without a change, or with an invalid number', async () => {
    expect(await webhooks(`set ${ID}`)).toMatchObject({
      code: EXIT.usage,
      err: 'Nothing to change: give --to, --agent, --state or --all.',
      asked: [],
    });
    expect(await webhooks(`rotate ${ID} --overlap-hours soon`)).toMatchObject({
      code: EXIT.usage,
      asked: [],
    });
  });

  it('prints the errors of the server, and their fields', async () => {
    const message = 'url: "10.0.0.1" is not at a public address';
    answer = { status: 400, body: { error: { message, fields: [{ field: 'url', message }] } } };
    expect(await webhooks('create http://10.0.0.1/')).toMatchObject({
      code: EXIT.failed,
      out: '',
      err: expect.stringContaining(message) as string,
    });
  });
});
