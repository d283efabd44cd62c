import fc from 'fast-check';
import { decodeEnvelope, encodeEnvelope, encodeErrorEnvelope, envelopeAround } from './json-rpc.js';
import { EnvelopeError } from './envelope-error.js';

const request = (members: object): string =>
  JSON.stringify({ jsonrpc: '2.0', method: 'GetTask', ...members });

function refusal(body: string): EnvelopeError {
  try {
    decodeEnvelope(body);
  } catch (error) {
    if (error instanceof EnvelopeError) return error;
    throw error;
  }
  throw new Error('it was accepted');
}

describe('a JSON-RPC envelope', () => {
  it.each(['a', '', 7, -1, 0, null])('echoes the id %p', (id) => {
    expect(decodeEnvelope(request({ id, params: { a: 1 } }))).toEqual({
      id,
      hasId: true,
      method: 'GetTask',
      params: { a: 1 },
    });
  });

  it.each(['a"\u2028\\', '', 7, -1.5, null])(
    'has one text for the id %p, from a result or around its JSON',
    (id) => {
      const result = { a: ['"', 1.5, null], b: {} };
      expect(envelopeAround(id, JSON.stringify(result))).toBe(JSON.stringify(encodeEnvelope(id, result)));
    },
  );

  it('distinguishes a notification from an id of null', () => {
    expect(decodeEnvelope(request({}))).toMatchObject({ id: null, hasId: false });
    expect(decodeEnvelope(request({ id: null }))).toMatchObject({ id: null, hasId: true });
  });

  it.each([
    ['an empty body', '', /empty/],
    ['only spaces', ' \n', /empty/],
    ['no JSON', '{"jsonrpc": ', /not JSON/],
    ['an unquoted word', 'hello', /not JSON/],
  ])('refuses %s as a parse error', (_what, body, message) => {
    const error = refusal(body);
    expect(error).toMatchObject({ kind: 'parse', id: null });
    expect(error.message).toMatch(message);
  });

  it('refuses a batch with the remedy', () => {
    expect(refusal(`[${request({ id: 1 })}]`)).toMatchObject({
      kind: 'invalid-request',
      id: null,
      message: 'batch requests are not supported: send one request per call',
    });
  });

  it.each(['"text"', '7', 'true', 'null'])('refuses the body %s', (body) => {
    expect(refusal(body)).toMatchObject({ kind: 'invalid-request', id: null });
  });

  it.each([
    [{ id: {} }, 'id', null],
    [{ id: [] }, 'id', null],
    [{ id: true }, 'id', null],
    [{ id: 1.5 }, 'id', null],
    [{ id: 2 ** 60 }, 'id', null],
    [{ id: 'x'.repeat(5000) }, 'id', null],
    [{ id: 1, jsonrpc: '1.0' }, 'jsonrpc', 1],
    [{ id: 1, jsonrpc: undefined }, 'jsonrpc', 1],
    [{ id: 'a', method: undefined }, 'method', 'a'],
    [{ id: 'a', method: '' }, 'method', 'a'],
    [{ id: 'a', method: 5 }, 'method', 'a'],
  ])('refuses %j naming the member, with the id it could read', (members, field, id) => {
    const error = refusal(request(members));
    expect(error).toMatchObject({ kind: 'invalid-request', id });
    expect(error.detail.violations?.[0]?.field).toBe(field);
    expect(error.message).toMatch(new RegExp(`^${field}: `));
  });

  it.each([
    ['__proto__', '{"jsonrpc":"2.0","id":3,"method":"m","params":{"a":[{"__proto__":{"x":1}}]}}'],
    [
      'constructor.prototype',
      '{"jsonrpc":"2.0","id":3,"method":"m","params":{"constructor":{"prototype":{}}}}',
    ],
  ])('refuses the key %s by name, with the id', (key, body) => {
    const error = refusal(body);
    expect(error).toMatchObject({ kind: 'invalid-request', id: 3 });
    expect(error.message).toContain(`"${key}"`);
  });

  it('takes a member called constructor that pollutes nothing', () => {
    expect(decodeEnvelope(request({ params: { constructor: 'a car maker' } })).params).toEqual({
      constructor: 'a car maker',
    });
  });

  it('refuses 10,000 levels of nesting with the limit, with the id', () => {
    const deep = '['.repeat(10_000) + ']'.repeat(10_000);
    const error = refusal(`{"jsonrpc":"2.0","id":"d","method":"m","params":${deep}}`);
    expect(error).toMatchObject({ kind: 'invalid-request', id: 'd' });
    expect(error.message).toMatch('200 levels');
  });

  it('accepts depth within the limit', () => {
    const deep = '['.repeat(150) + ']'.repeat(150);
    expect(() => decodeEnvelope(`{"jsonrpc":"2.0","id":1,"method":"m","params":${deep}}`)).not.toThrow();
  });

  it('never fails with anything but a readable refusal', () => {
    fc.assert(
      fc.property(fc.oneof(fc.string(), fc.json()), (body) => {
        try {
          decodeEnvelope(body);
        } catch (error) {
          expect(error).toBeInstanceOf(EnvelopeError);
        }
      }),
    );
  });

  it('encodes answers', () => {
    expect(encodeEnvelope('a', { ok: true })).toEqual({ jsonrpc: '2.0', id: 'a', result: { ok: true } });
    expect(encodeErrorEnvelope(null, { code: -32700, message: 'm' })).toEqual({
      jsonrpc: '2.0',
      id: null,
      error: { code: -32700, message: 'm' },
    });
  });
});
