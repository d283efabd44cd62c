import { randomUUID } from 'node:crypto';
import { openStores, type Stores } from '../stores.fixture.js';
import { PushReceiverStore } from './push-receiver.store.js';

let stores: Stores;
let receivers: PushReceiverStore;

beforeAll(async () => {
  stores = await openStores();
  receivers = new PushReceiverStore(stores.database);
});
afterAll(() => stores.close());

const HOUR_MS = 3_600_000;

it('each tenant has of each host whether it has ever accepted a delivery, and the number of its refusals', async () => {
  const [tenantId, other] = [randomUUID(), randomUUID()];
  const turn = (host: string, tenant = tenantId) => receivers.takeTurn({ tenantId: tenant, host }, HOUR_MS);
  const unknown = { isConfirmed: false, failures: 0, waitMs: 0 };
  expect(await turn('a.example')).toEqual(unknown);

  await receivers.refuse({ tenantId, host: 'a.example' }, 2, HOUR_MS);
  await receivers.confirm({ tenantId, host: 'b.example' });
  await receivers.refuse({ tenantId, host: 'c.example' }, 1, 0);
  expect(await turn('a.example')).toMatchObject({ isConfirmed: false, failures: 2 });
  expect((await turn('a.example')).waitMs).toBeGreaterThan(HOUR_MS / 2);
  expect(await turn('b.example')).toEqual({ isConfirmed: true, failures: 0, waitMs: 0 });
  // One config tries the receiver, the next ones wait for it.
  expect(await turn('c.example')).toEqual({ isConfirmed: false, failures: 1, waitMs: 0 });
  expect((await turn('c.example')).waitMs).toBeGreaterThan(HOUR_MS / 2);
  for (const host of ['a.example', 'b.example']) expect(await turn(host, other)).toEqual(unknown);
  expect(await turn('d.example')).toEqual(unknown);
});

it('a receiver that has accepted a delivery stays confirmed, and a refusal that is counted already changes nothing', async () => {
  const key = { tenantId: randomUUID(), host: 'a.example' };
  const read = () => receivers.takeTurn(key, HOUR_MS);
  await receivers.refuse(key, 3, HOUR_MS);
  await receivers.refuse(key, 2, 0);
  expect(await read()).toMatchObject({ failures: 3 });
  expect((await read()).waitMs).toBeGreaterThan(HOUR_MS / 2);
  await receivers.confirm(key);
  await receivers.refuse(key, 4, HOUR_MS);
  expect(await read()).toEqual({ isConfirmed: true, failures: 0, waitMs: 0 });
});
