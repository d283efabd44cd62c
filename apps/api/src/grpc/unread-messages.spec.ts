import { once } from 'node:events';
import { connect } from 'node:http2';
import type { Socket } from 'node:net';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { sampleTask } from '../../../../test/support/api/samples.js';

/** Together much more than unread answers of one address may take. */
const CALLS = 30;
const TEXT_BYTES = 4 * 1024 * 1024;
const HEADERS = {
  ':method': 'POST',
  ':path': '/lf.a2a.v1.A2AService/GetTask',
  'content-type': 'application/grpc',
  te: 'trailers',
  authorization: 'Bearer caller',
  'a2a-version': '1.0',
};
/** `tenant: "echo", id: "task-1"` */
const REQUEST = Buffer.from('000000000e0a046563686f12067461736b2d31', 'hex');

let api: FakeApi;
beforeEach(async () => {
  api = await startFakeApi({ GRPC_PORT: '0' });
});
afterEach(() => api.close());

const unread = async (): Promise<number> => {
  const text = await (await fetch(`${api.managementUrl}/metrics`)).text();
  return Number(/^baton_limit_exceeded_total\{limit="unreadAnswers"\} (\d+)$/m.exec(text)?.[1] ?? 0);
};

it('a caller of gRPC who does not read its answers is cut off', async () => {
  const text = { content: { $case: 'text' as const, value: 'x'.repeat(TEXT_BYTES) } };
  const part = { ...text, metadata: undefined, filename: '', mediaType: '' };
  api.operations.getTask = async () =>
    sampleTask({
      artifacts: [
        { artifactId: 'a', name: '', description: '', parts: [part], metadata: undefined, extensions: [] },
      ],
    });
  const session = connect(`http://${api.grpcAddress}`, { settings: { initialWindowSize: 2 ** 31 - 1 } });
  session.on('error', () => undefined);
  const [, socket] = (await once(session, 'connect')) as [unknown, Socket];
  for (let call = 0; call < CALLS; call++) {
    const stream = session.request(HEADERS).on('error', () => undefined);
    stream.pause();
    stream.end(REQUEST);
  }
  // The requests leave first.
  setTimeout(() => socket.pause(), 50);
  while ((await unread()) === 0) await new Promise((go) => setTimeout(go, 50));
  session.destroy();
});
