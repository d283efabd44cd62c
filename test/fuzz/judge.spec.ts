import type { HttpCase } from './http-cases.js';
import { type FuzzReport, shortfalls } from './fuzz.js';
import { judge, judgeNative, KEY } from './judge.js';

const sent = (body: unknown = { jsonrpc: '2.0', id: 7, method: 'GetTask' }): HttpCase => ({
  method: 'POST',
  path: '/agents/echo',
  headers: {},
  body: Buffer.from(JSON.stringify(body)),
});
const answer = (body: unknown, status = 200, type = 'application/json') => ({
  status,
  type,
  text: typeof body === 'string' ? body : JSON.stringify(body),
});
const good = { jsonrpc: '2.0', id: 7, result: {} };
const error = { code: -32602, message: 'id: is missing' };

describe('the judge of answers', () => {
  it.each([
    ['a result', good],
    ['an error', { jsonrpc: '2.0', id: 7, error }],
    ['a refusal before the id', { jsonrpc: '2.0', id: null, error: { ...error, code: -32600 } }],
    ['the program of Node, as an agent names it', { ...good, result: { command: process.execPath } }],
  ])('lets %s pass', (_what, body) => expect(judge(sent(), answer(body))).toBeUndefined());

  it.each([
    ['no answer', 'no answer within 1 ms'],
    ['a broken connection', 'ECONNRESET'],
    ['a 500', answer({ ...good, error }, 500)],
    ['a 503', answer('', 503)],
    ['a stack', answer({ jsonrpc: '2.0', id: 7, error: { code: 1, message: 'x\n    at f' } })],
    ['a stack in an error', answer('Error\n    at decode (/app/dist/libs/a2a.js:1:2)')],
    ['a secret', answer({ jsonrpc: '2.0', id: 7, error: { code: 1, message: `no: ${KEY}` } })],
    ['a case that was never sent', 'not sent'],
    ['SQL', answer({ jsonrpc: '2.0', id: 7, error: { code: 1, message: 'SELECT id FROM tasks' } })],
    ['no JSON', answer('oops')],
    ['no JSON-RPC', answer({ id: 7, result: {} })],
    ['a result and an error', answer({ ...good, error })],
    ['neither', answer({ jsonrpc: '2.0', id: 7 })],
    ['an error without a reason', answer({ jsonrpc: '2.0', id: 7, error: { code: 1, message: '' } })],
    ['another id', answer({ ...good, id: 8 })],
    ['an id of another type', answer({ ...good, id: '7' })],
    ['no id where there was one', answer({ jsonrpc: '2.0', id: null, error })],
    ['half a frame', answer('id: 1\ndata: {"jsonrpc":\n\n', 200, 'text/event-stream')],
    ['a line that is none of a stream', answer('id: 1\nError\n\n', 200, 'text/event-stream')],
  ])('finds %s', (_what, body) => expect(judge(sent(), body)).toBeDefined());
});

describe('the id of a refusal', () => {
  const cut = { ...sent(), body: Buffer.from('{"jsonrpc":"2.0","id":7,"params":[[[[') };
  const refusal = (id: unknown, code: number) => answer({ jsonrpc: '2.0', id, error: { ...error, code } });

  it('may have been read before the refused part, and is always in the body', () => {
    expect(judge(cut, refusal(7, -32600))).toBeUndefined();
    expect(judge(cut, refusal(8, -32600))).toBeDefined();
    expect(judge(cut, refusal(7, -32602))).toBeDefined();
  });
});

describe('the judge of what tenants write', () => {
  const put = { ...sent({ name: 1 }), method: 'PUT', path: '/v1/agents/a' };
  const refusal = (more: object = {}, status = 400) =>
    answer(
      { error: { code: 400, status: 'INVALID_PARAMS', message: 'name: is no text', fields: [{}], ...more } },
      status,
    );

  it.each([
    ['what was taken', answer({ agent: {} }, 201)],
    ['an empty answer', answer('', 204)],
    ['a refusal that names the field', refusal()],
    ['another refusal', refusal({ code: 409, status: 'CONFLICT', fields: undefined }, 409)],
  ])('lets %s pass', (_what, given) => expect(judgeNative(put, given)).toBeUndefined());

  it.each([
    ['no answer', 'ECONNRESET'],
    ['a 500', refusal({ code: 500 }, 500)],
    ['a refusal that names no field', refusal({ fields: undefined })],
    ['a refusal without a reason', refusal({ message: '' })],
    ['a code that is not the status', refusal({ code: 409 })],
    ['a refusal that is too long for anybody to read', refusal({ message: 'x'.repeat(200_000) })],
    ['no JSON', answer('oops', 400)],
    ['a stack', refusal({ message: 'Error\n    at decode (/app/x.js:1:2)' })],
    ['a secret', answer({ agent: { config: { key: KEY } } })],
  ])('finds %s', (_what, given) => expect(judgeNative(put, given)).toBeDefined());
});

describe('a run that has tried too little', () => {
  const report = (of: FuzzReport['parts'], answered = 1) =>
    shortfalls({ parts: of, neighbour: { answered, slowestMs: 1 } });
  const model = { cases: 100, answered: 100, endings: { completed: 50, failed: 50 } };

  it('is not a clean run', () => {
    expect(report({ model })).toEqual([]);
    expect(report({ model: { ...model, answered: 80 } })).toEqual([
      'model: only 80 of 100 cases were answered',
    ]);
    expect(report({ http: { cases: 10, answered: 0, endings: {} } })).toHaveLength(1);
    expect(report({ model: { ...model, endings: { failed: 100 } } })).toEqual([
      'model: of 100 cases none is completed',
    ]);
    expect(report({ model }, 0)).toEqual(["another tenant's echo was never answered"]);
  });
});
