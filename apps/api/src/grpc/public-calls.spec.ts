import { once } from 'node:events';
import http2 from 'node:http2';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { GrpcCaller } from '../../../../test/support/api/grpc-caller.js';

const HEALTH = 'grpc.health.v1.Health';
const REFLECTION = 'grpc.reflection.v1.ServerReflection';
const NO_TOKEN = { service: HEALTH, metadata: { authorization: '' } };
const GZIP = 2;
const MAX_OF_ADDRESS = 32;

/** A gRPC message with so many bytes, or the beginning of one. */
function framed(bytes: number, sent = bytes): Buffer {
  const frame = Buffer.alloc(5 + sent);
  frame.writeUInt32BE(bytes, 1);
  return frame;
}

describe('health and reflection over gRPC', () => {
  let api: FakeApi;
  let grpc: GrpcCaller;
  beforeEach(async () => {
    api = await startFakeApi({ GRPC_PORT: '0', REQUEST_TIMEOUT_MS: '500', UNAUTHENTICATED_PER_SECOND: '10' });
    grpc = new GrpcCaller(api.grpcAddress);
  });
  afterEach(async () => {
    grpc.close();
    await api.close();
  });

  const check = (service = '', caller = grpc) => caller.ask('Check', { service }, NO_TOKEN);

  /** How a call ended that sends these bytes, and leaves its side open unless the message is whole. */
  async function statusOf(path: string, bytes?: Buffer, isWhole = false): Promise<unknown> {
    const session = http2.connect(`http://${api.grpcAddress}`);
    const stream = session.request({
      ':method': 'POST',
      ':path': path,
      'content-type': 'application/grpc',
      te: 'trailers',
    });
    if (bytes) stream.write(bytes);
    if (isWhole) stream.end();
    const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
    // Not `session.destroy()`: with data unsent, Node 20 frees the session before its last use, and the process crashes.
    stream.close(http2.constants.NGHTTP2_CANCEL);
    session.close();
    return headers['grpc-status'];
  }

  it('take small messages only, which are not compressed', async () => {
    expect((await check('x'.repeat(4_000))).end.status).toBe('NOT_FOUND');
    expect((await check('x'.repeat(5_000))).end.status).toBe('RESOURCE_EXHAUSTED');
    const compressing = new GrpcCaller(api.grpcAddress, { 'grpc.default_compression_algorithm': GZIP });
    const { end } = await check('x'.repeat(3_000), compressing);
    compressing.close();
    expect(end).toMatchObject({
      status: 'INVALID_ARGUMENT',
      message: expect.stringContaining('compressed') as string,
    });
  });

  it('refuse a large message when its first bytes are there', async () => {
    expect(await statusOf(`/${REFLECTION}/ServerReflectionInfo`, framed(16_000_000, 10))).toBe('8');
  });

  it('refuse an invalid message', async () => {
    // A text that ends after its length.
    const unreadable = Buffer.from([0, 0, 0, 0, 2, 0x0a, 0x7f]);
    for (const rpc of [`${HEALTH}/Check`, `${HEALTH}/Watch`, `${REFLECTION}/ServerReflectionInfo`]) {
      expect(await statusOf(`/${rpc}`, unreadable, true)).toBe('3');
    }
  });

  it('wait for a message no longer than they must', async () => {
    expect(await statusOf(`/${HEALTH}/Check`)).toBe('4');
    expect(await statusOf(`/${REFLECTION}/ServerReflectionInfo`, framed(2_000, 10))).toBe('4');
  });

  it('take so many calls of one address at the same time', async () => {
    const watches = Array.from({ length: MAX_OF_ADDRESS }, () =>
      grpc.stream('Watch', { service: '' }, NO_TOKEN),
    );
    await Promise.all(watches.map(({ call }) => once(call, 'data')));
    expect((await check()).end.status).toBe('RESOURCE_EXHAUSTED');
    watches[0]!.call.cancel();
    await watches[0]!.end;
    let status = 'RESOURCE_EXHAUSTED';
    while (status === 'RESOURCE_EXHAUSTED') ({ status } = (await check()).end);
    expect(status).toBe('OK');
    for (const { call } of watches) call.cancel();
  });

  it('count as requests without a token', async () => {
    const ends = [];
    for (let i = 0; i < 101; i++) ends.push((await check()).end.status);
    expect(ends.slice(0, 100)).toEqual(Array<string>(100).fill('OK'));
    expect(ends[100]).toBe('RESOURCE_EXHAUSTED');
  });
});
