import type { CallContext, SendMessageRequest, SendResult } from '@baton/a2a';
import type { Environment } from '@baton/config';
import { promisify } from 'node:util';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { GrpcCaller } from '../../../../test/support/api/grpc-caller.js';
import { McpCaller } from '../../../../test/support/mcp-client/mcp-caller.js';
import type { BodyLease } from './body-lease.js';
import { BodyMemoryPool } from './body-memory-pool.js';
import { UnstoredBodies } from './unstored-bodies.js';

const KIB = 1024;

describe('the memory for messages that are not stored', () => {
  /** A holder has a sixteenth, and all together have half. */
  const pool = () => new UnstoredBodies({ bodyTotalBytes: 1_600 * KIB } as Environment);
  const requests = (count: number) => Array.from({ length: count }, () => ({}));
  const settled = async (...holds: Promise<void>[]): Promise<boolean[]> => {
    const hasRoom = holds.map(() => false);
    holds.forEach((hold, i) => void hold.then(() => (hasRoom[i] = true)));
    await new Promise(setImmediate);
    return hasRoom;
  };

  it('has a share for each holder, in the order of its requests', async () => {
    const bodies = pool();
    const [first, second, third, fourth, other] = requests(5) as [object, object, object, object, object];
    const holds = [
      bodies.hold(first, 'one', 60 * KIB),
      bodies.hold(second, 'one', 60 * KIB),
      bodies.hold(third, 'one', 20 * KIB),
      bodies.hold(fourth, 'one', 60 * KIB),
      bodies.hold(other, 'two', 60 * KIB),
    ];
    expect(await settled(...holds)).toEqual([true, false, false, false, true]);
    bodies.release(first);
    bodies.release(first);
    expect(await settled(...holds)).toEqual([true, true, true, false, true]);
    bodies.release(second);
    expect(await settled(...holds)).toEqual([true, true, true, true, true]);
  });

  it('has room for one body of any size, and does not count small ones', async () => {
    const bodies = pool();
    const [large, next, small] = requests(3) as [object, object, object];
    const holds = [
      bodies.hold(large, 'one', 5_000 * KIB),
      bodies.hold(next, 'one', 17 * KIB),
      bodies.hold(small, 'one', 16 * KIB),
    ];
    expect(await settled(...holds)).toEqual([true, false, true]);
  });

  it('is bounded for all holders together', async () => {
    const bodies = pool();
    const many = requests(9);
    const holds = many.map((request, i) => bodies.hold(request, `holder ${i}`, 100 * KIB));
    expect(await settled(...holds)).toEqual([...Array<boolean>(8).fill(true), false]);
    bodies.release(many[3]!);
    expect((await settled(...holds))[8]).toBe(true);
  });
});

describe('large messages of one tenant', () => {
  const TEXT = 'x'.repeat(200 * KIB);
  const message = { role: 'ROLE_USER', messageId: 'm', parts: [{ text: TEXT }] };
  let api: FakeApi;
  /** Calls that have reached their operation, oldest first. */
  let begun: { call: CallContext; id: string | undefined; fail: () => void }[];
  beforeEach(async () => {
    api = await startFakeApi({ GRPC_PORT: '0', BODY_TOTAL_BYTES: String(4_096 * KIB) });
    begun = [];
    const wait = (call: CallContext, { message }: SendMessageRequest) =>
      new Promise<never>((_, reject) => {
        const fail = (): void => reject(new Error('refused'));
        begun.push({ call, id: message?.messageId, fail });
      });
    Object.assign(api.operations, {
      sendMessage: (call: CallContext, request: SendMessageRequest): Promise<SendResult> =>
        wait(call, request),
      sendStreamingMessage: async function* (call: CallContext, request: SendMessageRequest) {
        yield await wait(call, request);
      },
    });
  });
  afterEach(async () => {
    for (const { fail } of begun) fail();
    await api.close();
  });

  const post = (path: string, body: object, token = 'caller'): Promise<unknown> =>
    fetch(api.url + path, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify(body),
    }).then((answer) => answer.text(), String);
  const rpc = (params: object, token?: string): Promise<unknown> =>
    post('/agents/echo', { jsonrpc: '2.0', id: 1, method: 'SendMessage', params }, token);

  const DOORS: Record<string, () => Promise<unknown>> = {
    'JSON-RPC': () => rpc({ message }),
    'HTTP+JSON': () => post('/agents/echo/message:send', { message }),
    gRPC: () =>
      new GrpcCaller(api.grpcAddress).ask(
        'SendMessage',
        { message },
        { metadata: { 'baton-agent': 'echo' } },
      ),
    MCP: () => new McpCaller(`${api.url}/mcp`, 'caller').tool('echo', { message: TEXT }),
  };

  /** Resolves when it is true. */
  const until = async (holds: () => boolean): Promise<void> => {
    while (!holds()) await new Promise(setImmediate);
  };
  const unparsed = (): number => api.app.get(BodyMemoryPool, { strict: false }).takenBytes;

  it.each(Object.keys(DOORS))('wait unparsed over %s while an earlier one is not stored', async (door) => {
    const answers = Array.from({ length: 3 }, () => DOORS[door]!());
    await until(() => begun.length === 1 && unparsed() > 2 * (200 - 16) * KIB);
    void rpc({ message: { ...message, parts: [{ text: 'small' }] } });
    await until(() => begun.length === 2);
    void rpc({ message }, 'stranger');
    await until(() => begun.length === 3);
    // A call whose message is stored may go on for hours.
    begun[0]!.call.onStored!();
    await until(() => begun.length === 4);
    begun[3]!.fail();
    await until(() => begun.length === 5);
    expect(unparsed()).toBe(0);
    for (const { fail } of begun) fail();
    await Promise.all(answers);
  });

  it('that are refused while they wait take no room when their turn comes', async () => {
    const leases = jest.spyOn(api.app.get(BodyMemoryPool, { strict: false }), 'lease');
    void rpc({ message });
    await until(() => begun.length === 1);
    const holds = jest.spyOn(api.app.get(UnstoredBodies, { strict: false }), 'hold');
    const refused = rpc({ message });
    await until(() => holds.mock.calls.length === 1);
    // As a slow body is, when others need its memory.
    (leases.mock.results[1]!.value as BodyLease).refuse();
    expect(await refused).toMatch('too many large requests');
    begun[0]!.fail();
    void rpc({ message: { ...message, messageId: 'next' } });
    await until(() => begun.length === 2);
    expect(begun.map(({ id }) => id)).toEqual(['m', 'next']);
  });

  it('are dropped if their caller leaves while they wait', async () => {
    void rpc({ message });
    await until(() => begun.length === 1);
    const leaving = new AbortController();
    const left = fetch(`${api.url}/agents/echo/message:send`, {
      method: 'POST',
      headers: { authorization: 'Bearer caller', 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify({ message: { ...message, messageId: 'left' } }),
      signal: leaving.signal,
    });
    await until(() => unparsed() > 0);
    const server = api.app.getHttpServer();
    const connections = promisify(server.getConnections.bind(server));
    const open = await connections();
    leaving.abort();
    await expect(left).rejects.toThrow();
    while ((await connections()) === open) await new Promise(setImmediate);
    begun[0]!.fail();
    await until(() => unparsed() === 0);
    void rpc({ message: { ...message, messageId: 'next' } });
    await until(() => begun.length === 2);
    expect(begun.map(({ id }) => id)).toEqual(['m', 'next']);
  });
});
