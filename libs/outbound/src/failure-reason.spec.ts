import { type AddressInfo, createServer } from 'node:net';
import { failureReason } from './failure-reason.js';
import { Outbound } from './outbound.js';

describe('why a call failed', () => {
  const outbound = new Outbound({ outboundAllow: ['127.0.0.1'] });
  afterAll(() => outbound.onApplicationShutdown());

  const reasonOf = (url: string) =>
    outbound.fetch(url).then(
      () => 'it did not',
      (error: unknown) => failureReason(error),
    );

  it('is said without addresses', async () => {
    const server = createServer((socket) => socket.destroy());
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/`;
    expect(await reasonOf(url)).toBe('it closed the connection');
    await new Promise((resolve) => server.close(resolve));
    expect(await reasonOf(url)).toBe('it refused the connection');
    expect(await reasonOf('http://10.0.0.1/')).toContain('is not at a public address');
    expect(failureReason(new AggregateError([Object.assign(new Error('x'), { code: 'ETIMEDOUT' })]))).toBe(
      'it did not answer in time',
    );
    expect(failureReason(new Error('something else'))).toBeUndefined();
  });
});
