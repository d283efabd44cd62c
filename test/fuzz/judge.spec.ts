import type { HttpCase } from './http-cases.js';
import { judge } from './judge.js';

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
  ])('lets %s pass', (_what, body) => expect(judge(sent(), answer(body))).toBeUndefined());

  it.each([
    ['no answer', 'no answer within 1 ms'],
    ['a broken connection', 'ECONNRESET'],
    ['a 500', answer({ ...good, error }, 500)],
    ['a 503', answer('', 503)],
    ['a stack', answer({ jsonrpc: '2.0', id: 7, error: { code: 1, message: 'x\n    at f' } })],
    ['a stack in an error', answer('Error\n    at decode (/app/dist/libs/a2a.js:1:2)')],
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
