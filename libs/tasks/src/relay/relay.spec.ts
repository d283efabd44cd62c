import { loadEnvironment } from '@baton/config';
import type { TaskStore } from '@baton/database';
import type { Messaging } from '@baton/messaging';
import { Logger, Metrics } from '@baton/telemetry';
import { randomUUID } from 'node:crypto';
import { Relay } from './relay.js';

it('compares the watched logs again after an outage until Postgres answers', async () => {
  let reconnected: () => void = () => undefined;
  const messaging = {
    onReconnect: (listener: () => void) => {
      reconnected = listener;
      return () => undefined;
    },
    subscribeTask: () => Promise.resolve(() => undefined),
  };
  let tries = 0;
  let compared: () => void = () => undefined;
  const isCompared = new Promise<void>((resolve) => (compared = resolve));
  const heads = async (): Promise<Map<string, number>> => {
    tries += 1;
    if (tries < 3) throw new Error('terminating connection');
    compared();
    return new Map();
  };
  const environment = loadEnvironment({
    DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
    RELAY_TICK_MS: '3600000',
  });
  const relay = new Relay(
    { heads } as unknown as TaskStore,
    messaging as unknown as Messaging,
    environment,
    Logger.silent(),
    new Metrics(),
  );
  relay.onModuleInit();
  const end = new AbortController();
  await relay.watch({ tenantId: randomUUID(), taskId: randomUUID() }, 0, 0, end.signal);
  reconnected();
  await isCompared;
  expect(tries).toBe(3);
  end.abort();
  relay.onModuleDestroy();
});
