import type { CallContext } from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import { EventEmitter } from 'node:events';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { sampleTask } from '../../../../test/support/api/samples.js';
import { LoopTurns } from './loop-turns.js';
import { ReadMemoryPool } from './read-memory-pool.js';
import type { Exchange } from './requests.js';

const MIB = 1024 * 1024;
/** What one read may take, and two of which one tenant may take. */
const READ = 16 * MIB;
const ID = '0198a000-0000-7000-8000-000000000001';

/** Lets all callbacks that are ready run. */
const settled = () => new Promise((resolve) => setImmediate(resolve));

describe('the memory for reads of large tasks', () => {
  const environment = loadEnvironment({ DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none' });
  let pool: ReadMemoryPool;
  let granted: string[];
  const calls: { end(): void; taken: Promise<unknown> }[] = [];
  beforeEach(() => {
    pool = new ReadMemoryPool(environment, new LoopTurns());
    granted = [];
  });
  // A call that is left waiting would be refused while another file is tested.
  afterEach(async () => {
    for (const { end } of calls) end();
    await Promise.all(calls.splice(0).map(({ taken }) => taken));
  });

  /** A call that notes when it is granted; `end` sends its answer. */
  function call(tenantId: string, name: string, bytes = READ) {
    const response = new EventEmitter();
    const request = { user: { tenantId, principal: { kind: 'service', subject: 's' } } };
    const lease = pool.leaseFor({ request, reply: { raw: response } } as unknown as Exchange, 'read');
    const taken = lease.take(bytes).then((is) => is && granted.push(name));
    const made = { lease, taken, end: () => void response.emit('close') };
    calls.push(made);
    return made;
  }

  it('is shared: half of it is the most that one tenant has, and the rest of its calls wait for an answer', async () => {
    const [first] = [call('a', 'a1'), call('a', 'a2'), call('a', 'a3')];
    call('b', 'b1');
    await settled();
    expect(granted).toEqual(['a1', 'a2', 'b1']);
    first.end();
    await settled();
    expect(granted).toEqual(['a1', 'a2', 'b1', 'a3']);
  });

  it('gives the calls of a tenant turns of the event loop, one at a time', async () => {
    const turns = [call('a', 'a1'), call('a', 'a2'), call('b', 'b1')].map(({ lease }, i) => ({ lease, i }));
    const order: number[] = [];
    await Promise.all(turns.map(({ lease, i }) => lease.turn(MIB).then(() => order.push(i))));
    expect(order).toEqual([0, 2, 1]);
  });

  it('goes round the tenants that wait, however much each has asked', async () => {
    const [a1] = [call('a', 'a1'), call('a', 'a2')];
    const [b1] = [call('b', 'b1'), call('b', 'b2')];
    for (let i = 3; i < 6; i++) call('a', `a${i}`);
    call('c', 'c1');
    await settled();
    granted = [];
    a1.end();
    b1.end();
    await settled();
    expect(granted.toSorted()).toEqual(['a3', 'c1']);
  });

  it('makes no small read wait, and no call that has some already', async () => {
    const { lease } = call('a', 'a1');
    call('a', 'a2');
    call('a', 'a3');
    call('a', 'small', MIB);
    await settled();
    expect(await lease.take(READ)).toBe(true);
    await settled();
    expect(granted.toSorted()).toEqual(['a1', 'a2', 'small']);
  });

  it('is forgotten by calls whose caller leaves while they wait', async () => {
    const [first, , third] = [call('a', 'a1'), call('a', 'a2'), call('a', 'a3'), call('a', 'a4')];
    third.end();
    await third.taken;
    first.end();
    await settled();
    expect(granted).toEqual(['a1', 'a2', 'a4']);
  });

  it('is for those that wait when a call gives back what it did not need', async () => {
    const [first] = [call('a', 'a1'), call('a', 'a2'), call('a', 'a3'), call('a', 'a4')];
    await settled();
    first.lease.giveBack(READ - MIB);
    await settled();
    expect([granted, first.lease.bytes]).toEqual([['a1', 'a2'], MIB]);
    first.lease.giveBack(MIB);
    await settled();
    expect([granted, first.lease.bytes]).toEqual([['a1', 'a2', 'a3'], 0]);
    first.end();
    await settled();
    expect(granted).toEqual(['a1', 'a2', 'a3']);
  });

  it('stays taken while a call reads, though its caller has left', async () => {
    const [first] = [call('a', 'a1'), call('a', 'a2'), call('a', 'a3')];
    await settled();
    let isRead!: () => void;
    const read = first.lease.during(() => new Promise<void>((resolve) => (isRead = resolve)));
    first.end();
    await settled();
    expect(granted).toEqual(['a1', 'a2']);
    isRead();
    await read;
    await settled();
    expect(granted).toEqual(['a1', 'a2', 'a3']);
  });

  it('is not for a large read of a call whose caller has left before', async () => {
    const { lease, end } = call('a', 'small', MIB);
    await settled();
    end();
    expect([await lease.take(READ), await lease.take(MIB)]).toEqual([false, true]);
  });
});

describe('more reads of large tasks than there is memory for', () => {
  let api: FakeApi;
  let atOnce = 0;
  let maxAtOnce = 0;
  let open: () => void;
  beforeAll(async () => {
    api = await startFakeApi();
    api.agentOfTask[ID] = 'echo';
    const gate = new Promise<void>((resolve) => (open = resolve));
    api.operations.getTask = async ({ tenantId, memory }: CallContext, { id }) => {
      await memory?.take(READ);
      if (tenantId !== 'tenant-1') return sampleTask({ id });
      maxAtOnce = Math.max(maxAtOnce, ++atOnce);
      await gate;
      atOnce -= 1;
      return sampleTask({ id });
    };
  });
  afterAll(() => api.close());

  it('wait, are refused with 503 and the time to come again when too many wait, and stop no other tenant', async () => {
    const get = { jsonrpc: '2.0', id: 1, method: 'GetTask', params: { id: ID } };
    const version = { 'a2a-version': '1.0' };
    const sent = Array.from({ length: 4 }, () => api.rpc(get, version));
    while (atOnce < 2) await settled();
    // Waiting calls of the same tenant, without a connection for each: a busy machine takes too long to accept five hundred.
    const pool = api.app.get(ReadMemoryPool, { strict: false });
    const others = new AbortController();
    let doesWait = true;
    for (let i = 0; doesWait && i < 5_000; i++) {
      const taken = pool.take('tenant-1', READ, others.signal);
      doesWait = await Promise.race([taken.then(() => false), settled().then(() => true)]);
    }
    expect(doesWait).toBe(false);
    const refused = await api.rpc(get, version);
    expect(refused.headers.get('retry-after')).toBe('5');
    expect(await refused.json()).toMatchObject({
      error: {
        message: expect.stringContaining('/v1/tasks/{id}/artifacts') as string,
        data: expect.arrayContaining([
          expect.objectContaining({ reason: 'UNAVAILABLE', metadata: { retryAfterSeconds: '5' } }),
        ]) as unknown,
      },
    });
    const headers = { authorization: 'Bearer reader' };
    const plain = await fetch(`${api.url}/v1/tasks/${ID}`, { headers });
    expect([plain.status, plain.headers.get('retry-after')]).toEqual([503, '5']);
    const other = await api.rpc(get, { ...version, authorization: 'Bearer stranger' });
    expect(await other.json()).toMatchObject({ result: { id: ID } });
    others.abort();
    open();
    const answers = await Promise.all(sent.map(async (answer) => (await answer).json()));
    expect(answers.filter((answer) => 'result' in (answer as object)).length).toBeGreaterThanOrEqual(2);
    expect(maxAtOnce).toBeLessThanOrEqual(3);
  });
});
