import { credentials, Metadata } from '@grpc/grpc-js';
import { type CallContext, type StreamItem, TaskState } from '@baton/a2a';
import { once } from 'node:events';
import http2 from 'node:http2';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { GrpcCaller } from '../../../../test/support/api/grpc-caller.js';
import { request, statusItem, taskItem } from '../../../../test/support/api/samples.js';
import { callerAddress } from './grpc-request.js';
import { methodOf } from './grpc-services.js';
import { decodeMessage, encodeMessage, protoFiles } from './protobuf.js';

const HEALTH = 'grpc.health.v1.Health';
const ECHO = { metadata: { 'baton-agent': 'echo' } };
const { message } = request.send.params;

/** Self-signed for localhost, until 2126. */
const CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBmjCCAUGgAwIBAgIUYP9JoT3Uz1uJr1CjBm1PDpPuPBUwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMjE1MzYyNVoYDzIxMjYxMDI5
MTUzNjI1WjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQ84nTTULUqReVxuPCJYVKjTY/BiU5dUs1CLjWpAPlGaCd6onAyj71+
fTx+53aWriLA4hAKeNVeDMjrAEjp0wSso28wbTAdBgNVHQ4EFgQUYIS/Sdp5VAof
BvJQwHy+63d8OK8wHwYDVR0jBBgwFoAUYIS/Sdp5VAofBvJQwHy+63d8OK8wDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDRwAwRAIgKDv+n4PDR5OXDE6pDyTb7PY21rtV49Xg/VweIJSiy0kCIBOE
0e7wSRiT6XfxKWbAUvXlGdUVc4SSUoMIgvfK57tl
-----END CERTIFICATE-----`;
const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgy/2e/zRfJeFLD5QV
F+zO7FpS9A5VwL05ET0QnEcRCaihRANCAAQ84nTTULUqReVxuPCJYVKjTY/BiU5d
Us1CLjWpAPlGaCd6onAyj71+fTx+53aWriLA4hAKeNVeDMjrAEjp0wSs
-----END PRIVATE KEY-----`;

describe('the gRPC port', () => {
  let api: FakeApi;
  let grpc: GrpcCaller;
  beforeAll(async () => {
    api = await startFakeApi({
      GRPC_PORT: '0',
      REQUEST_TIMEOUT_MS: '300',
      GRPC_PUBLIC_ADDRESS: 'grpc.example:443',
    });
    grpc = new GrpcCaller(api.grpcAddress);
  });
  afterAll(async () => {
    grpc.close();
    await api.close();
  });

  it('shows to every caller whether it serves', async () => {
    const options = { service: HEALTH, metadata: { authorization: '' } };
    for (const service of ['', 'lf.a2a.v1.A2AService', 'a2a.v1.A2AService']) {
      expect((await grpc.ask('Check', { service }, options)).json).toEqual({ status: 'SERVING' });
    }
    expect((await grpc.ask('Check', { service: 'other' }, options)).end.status).toBe('NOT_FOUND');
    const watch = grpc.stream('Watch', { service: 'other' }, options);
    await once(watch.call, 'data');
    expect(watch.messages).toEqual([{ status: 'SERVICE_UNKNOWN' }]);
    watch.call.cancel();
  });

  it.each(['grpc.reflection.v1.ServerReflection', 'grpc.reflection.v1alpha.ServerReflection'])(
    'describes its services by %s',
    async (service) => {
      const { input, output } = methodOf(service, 'ServerReflectionInfo');
      const call = grpc.client.makeBidiStreamRequest(
        `/${service}/ServerReflectionInfo`,
        (json: object) => encodeMessage(input, json),
        (bytes: Buffer) => decodeMessage(output, bytes),
        new Metadata(),
      );
      type Answer = { fileDescriptorResponse?: { fileDescriptorProto: string[] } };
      const ask = async (question: object): Promise<Answer> => {
        call.write(question);
        const [answer] = (await once(call, 'data')) as [Answer];
        return answer;
      };
      expect(await ask({ listServices: '' })).toMatchObject({
        listServicesResponse: { service: [{ name: 'lf.a2a.v1.A2AService' }, { name: 'a2a.v1.A2AService' }] },
      });
      const found = await ask({ fileContainingSymbol: 'lf.a2a.v1.A2AService' });
      const { fileDescriptorProto } = found.fileDescriptorResponse!;
      // With the files of Empty, Struct and Timestamp.
      expect(fileDescriptorProto).toHaveLength(4);
      const byName = await ask({ fileByFilename: protoFiles()[0]!.name });
      expect(byName.fileDescriptorResponse).toBeDefined();
      expect(await ask({ fileContainingSymbol: 'no.such.Thing' })).toMatchObject({
        errorResponse: { errorCode: 5 },
      });
      call.end();
      await once(call, 'status');
    },
  );

  it('gives up on a message that does not arrive', async () => {
    const session = http2.connect(`http://${api.grpcAddress}`);
    const stream = session.request({
      ':method': 'POST',
      ':path': '/lf.a2a.v1.A2AService/GetTask',
      'content-type': 'application/grpc',
      te: 'trailers',
      authorization: 'Bearer caller',
    });
    stream.on('error', () => undefined);
    const [headers] = (await once(stream, 'response')) as [http2.IncomingHttpHeaders];
    expect(headers['grpc-status']).toBe('4');
    expect(decodeURI(String(headers['grpc-message']))).toContain('did not arrive within 300 ms');
    // Not `session.destroy()`: with data unsent, Node 20 frees the session before its last use, and the process crashes.
    stream.close(http2.constants.NGHTTP2_CANCEL);
    session.close();
  });

  it('survives invalid messages', async () => {
    const path = '/lf.a2a.v1.A2AService/SendMessage';
    for (const bytes of [Buffer.from([0xff, 0xff]), Buffer.alloc(1000, 0x0a), Buffer.from([0x0a, 0x7f])]) {
      const metadata = new Metadata();
      metadata.set('authorization', 'Bearer caller');
      const code = await new Promise((resolve) => {
        const same = (value: Buffer): Buffer => value;
        grpc.client.makeUnaryRequest(path, same, same, bytes, metadata, (error) => resolve(error?.code));
      });
      expect(code).toBe(3);
    }
  });

  it('believes trusted proxies alone about addresses', () => {
    const trusted = (address: string): boolean => address.startsWith('10.');
    expect(callerAddress('10.0.0.1', '1.2.3.4, 5.6.7.8, 10.0.0.2', trusted)).toBe('5.6.7.8');
    expect(callerAddress('9.9.9.9', '1.2.3.4', trusted)).toBe('9.9.9.9');
    expect(callerAddress('10.0.0.1', undefined, trusted)).toBe('10.0.0.1');
    expect(callerAddress('10.0.0.1', 'nonsense', trusted)).toBe('10.0.0.1');
  });

  it('is on cards, with the agent as the tenant', async () => {
    const card = async (version: string): Promise<Record<string, unknown>> => {
      const headers = { authorization: 'Bearer caller', ...(version && { 'a2a-version': version }) };
      const answer = await fetch(`${api.url}/agents/echo/.well-known/agent-card.json`, { headers });
      return (await answer.json()) as Record<string, unknown>;
    };
    const grpcOf = { url: 'grpc.example:443', protocolBinding: 'GRPC' };
    for (const version of ['1.0', '']) {
      expect((await card(version)).supportedInterfaces).toEqual(
        expect.arrayContaining([
          { ...grpcOf, protocolVersion: '1.0', tenant: 'echo' },
          expect.objectContaining({ ...grpcOf, protocolVersion: '0.3' }),
        ]),
      );
    }
    expect((await card('0.3')).additionalInterfaces).toContainEqual({
      url: 'grpc.example:443',
      transport: 'GRPC',
    });
  });
});

describe('a gRPC port without GRPC_PUBLIC_ADDRESS', () => {
  it('is on no card: Google ADK refuses cards with an address that is not http(s) and of their own origin', async () => {
    const api = await startFakeApi({ GRPC_PORT: '0' });
    const grpc = new GrpcCaller(api.grpcAddress);
    try {
      const cards: string[] = [];
      for (const path of ['/agents/echo/.well-known/agent-card.json', '/.well-known/agent-card.json']) {
        for (const card of [path, path.replace('agent-card.json', 'agent.json')]) {
          for (const version of ['', '1.0', '0.3']) {
            const headers = { authorization: 'Bearer caller', 'a2a-version': version };
            cards.push(await (await fetch(api.url + card, { headers })).text());
          }
        }
      }
      const urls = cards.flatMap((card) => card.match(/(?<="url":")[^"]*/g) ?? []);
      expect(urls.length).toBeGreaterThan(cards.length);
      for (const url of urls) expect(new URL(url).origin).toBe(api.url);
      expect(cards.join()).not.toContain('GRPC');
      // The port is served all the same.
      expect((await grpc.ask('Check', {}, { service: HEALTH })).json).toEqual({ status: 'SERVING' });
    } finally {
      grpc.close();
      await api.close();
    }
  });
});

describe('a gRPC port with a certificate', () => {
  it('accepts TLS alone', async () => {
    const api = await startFakeApi({ GRPC_PORT: '0', GRPC_TLS_CERT: CERTIFICATE, GRPC_TLS_KEY: KEY });
    const options = { service: HEALTH };
    const secure = new GrpcCaller(
      api.grpcAddress.replace('127.0.0.1', 'localhost'),
      {},
      credentials.createSsl(Buffer.from(CERTIFICATE)),
    );
    expect((await secure.ask('Check', {}, options)).json).toEqual({ status: 'SERVING' });
    const plain = new GrpcCaller(api.grpcAddress);
    expect((await plain.ask('Check', {}, options)).end.status).toBe('UNAVAILABLE');
    secure.close();
    plain.close();
    await api.close();
  });

  it('needs the key as well', async () => {
    const half = startFakeApi({ GRPC_PORT: '0', GRPC_TLS_CERT: CERTIFICATE });
    await expect(half).rejects.toThrow('Only one of GRPC_TLS_CERT and GRPC_TLS_KEY is set');
  });
});

describe('a shutdown', () => {
  it('ends streams so that they can be resumed, and waits for calls', async () => {
    const api = await startFakeApi({ GRPC_PORT: '0', API_GRACE_MS: '5000' });
    const grpc = new GrpcCaller(api.grpcAddress);
    let finish = (): void => undefined;
    Object.assign(api.operations, {
      sendStreamingMessage: async function* (
        _: CallContext,
        __: unknown,
        signal: AbortSignal,
      ): AsyncGenerator<StreamItem[]> {
        yield [taskItem()];
        yield [statusItem(2, TaskState.TASK_STATE_WORKING)];
        await new Promise<void>((over) => signal.addEventListener('abort', () => over()));
      },
      listTasks: () =>
        new Promise((resolve) => {
          finish = () => resolve({ tasks: [], nextPageToken: '', pageSize: 1, totalSize: 0 });
        }),
    });
    const health = grpc.stream('Watch', {}, { service: HEALTH });
    await once(health.call, 'data');
    const list = grpc.ask('ListTasks', {}, ECHO);
    const stream = grpc.stream('SendStreamingMessage', { message }, ECHO);
    await once(stream.call, 'data');
    await once(stream.call, 'data');
    const closed = api.close();
    const end = await stream.end;
    expect(end).toMatchObject({
      status: 'UNAVAILABLE',
      message: expect.stringContaining('shutting down') as string,
    });
    expect(end.metadata.get('last-event-id')).toEqual(['2']);
    finish();
    expect((await list).end.status).toBe('OK');
    await closed;
    expect(health.messages).toEqual([{ status: 'SERVING' }, { status: 'NOT_SERVING' }]);
    grpc.close();
  });
});
