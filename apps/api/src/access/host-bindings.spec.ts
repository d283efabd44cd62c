import type { HostBinding, HostStore } from '@baton/database';
import type { ControlMessage, Messaging } from '@baton/messaging';
import type { FastifyRequest } from 'fastify';
import { HostBindings } from './host-bindings.js';

const BINDING: HostBinding = { host: 'open.example', tenantId: 'tenant-1', agent: 'echo', public: true };
const to = (host?: string) => ({ headers: { host } }) as FastifyRequest;

let bound: HostBinding[];
let asked: string[];
let tell: (message: ControlMessage) => void;
let bindings: HostBindings;

beforeEach(async () => {
  jest.useFakeTimers({ doNotFake: ['performance'] });
  // The cache keeps the clock it found when it was loaded.
  jest.spyOn(performance, 'now').mockImplementation(() => Date.now());
  bound = [BINDING];
  asked = [];
  const find = async (name: string) => {
    asked.push(name);
    return bound.find(({ host }) => host === name);
  };
  const subscribeControl = async (listener: typeof tell) => {
    tell = listener;
    return () => undefined;
  };
  bindings = new HostBindings(
    { find } as HostStore,
    { subscribeControl, onSignalsMissed: () => () => undefined } as unknown as Messaging,
  );
  await bindings.onModuleInit();
});
afterEach(() => {
  jest.restoreAllMocks();
  jest.useRealTimers();
});

describe('what a host is bound to', () => {
  it('is looked up once for many requests, also when it is nothing', async () => {
    for (const host of ['Open.example:80', 'open.example', 'open.example.']) {
      expect(await bindings.find(to(host))).toEqual(BINDING);
    }
    for (let i = 0; i < 3; i += 1) expect(await bindings.find(to('other.example'))).toBeUndefined();
    expect(asked).toEqual(['open.example', 'other.example']);
  });

  it('is looked up again when an operator has changed something, at once', async () => {
    await bindings.find(to(BINDING.host));
    bound = [];
    expect(await bindings.find(to(BINDING.host))).toEqual(BINDING);
    tell({ type: 'catalog-changed', tenantId: 'tenant-1' });
    expect(await bindings.find(to(BINDING.host))).toBeUndefined();
  });

  it('is looked up again after a second without a notification', async () => {
    await bindings.find(to(BINDING.host));
    bound = [];
    jest.advanceTimersByTime(1_001);
    expect(await bindings.find(to(BINDING.host))).toBeUndefined();
  });

  it('is nothing for a request without a host', async () => {
    expect(await bindings.find(to())).toBeUndefined();
  });
});
