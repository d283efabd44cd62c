import type { ControlMessage } from './messaging.js';
import { type StaleEntries, TenantCache } from './tenant-cache.js';

interface Value {
  id: string;
}

let rows: Record<string, Value>;
let reads: string[];
let tell: (message: ControlMessage) => void;
let reconnect: () => void;
let open: number;
let hold: Promise<void> | undefined;
let cache: TenantCache<Value>;

const messaging = {
  subscribeControl: async (listener: (message: ControlMessage) => void) => {
    tell = listener;
    open += 1;
    return () => void (open -= 1);
  },
  onSignalsMissed: (listener: () => void) => {
    reconnect = listener;
    open += 1;
    return () => void (open -= 1);
  },
};

const staleAfter = (message: ControlMessage): StaleEntries<Value> => {
  if (message.type === 'token-revoked') return (_key, value) => value?.id === message.tokenId;
  if (message.type !== 'catalog-changed') return 'none';
  const { tenantId } = message;
  return tenantId === null ? 'all' : (key) => key.startsWith(`${tenantId}/`);
};

beforeEach(async () => {
  [rows, reads, open, hold] = [{ 'acme/a': { id: '1' }, 'acme/b': { id: '2' } }, [], 0, undefined];
  const load = async (key: string) => {
    reads.push(key);
    const row = rows[key];
    await hold;
    return row;
  };
  cache = new TenantCache(messaging, { load, ttlMs: 60_000, staleAfter });
  await cache.start();
});

it('reads a value once for callers that miss at the same time, and once if there is none', async () => {
  const found = await Promise.all([cache.get('acme/a'), cache.get('acme/a'), cache.get('acme/a')]);
  expect(found).toEqual(Array(3).fill({ id: '1' }));
  expect(await cache.get('acme/none')).toBeUndefined();
  expect(await cache.get('acme/none')).toBeUndefined();
  expect(reads).toEqual(['acme/a', 'acme/none']);
});

it('reads again what a control message makes stale, and nothing else', async () => {
  for (const key of ['acme/a', 'acme/b', 'other/c']) await cache.get(key);
  tell({ type: 'limits-changed', tenantId: 'acme' });
  tell({ type: 'token-revoked', tenantId: 'acme', tokenId: '1' });
  for (const key of ['acme/a', 'acme/b', 'other/c']) await cache.get(key);
  expect(reads.splice(0)).toEqual(['acme/a', 'acme/b', 'other/c', 'acme/a']);
  rows['other/c'] = { id: '3' };
  tell({ type: 'catalog-changed', tenantId: 'other' });
  expect(await cache.get('other/c')).toEqual({ id: '3' });
  expect(await cache.get('acme/a')).toEqual({ id: '1' });
  expect(reads).toEqual(['other/c']);
});

it('forgets everything after the control channel was lost, and listens no more after it has stopped', async () => {
  await cache.get('acme/a');
  await cache.get('acme/none');
  reconnect();
  await cache.get('acme/a');
  await cache.get('acme/none');
  expect(reads).toEqual(['acme/a', 'acme/none', 'acme/a', 'acme/none']);
  cache.stop();
  expect(open).toBe(0);
});

it('does not keep what a read has found that began before a change', async () => {
  let go: () => void = () => undefined;
  hold = new Promise((resolve) => (go = resolve));
  const before = [cache.get('acme/a'), cache.get('acme/new')];
  rows['acme/a'] = { id: '9' };
  rows['acme/new'] = { id: '8' };
  tell({ type: 'catalog-changed', tenantId: 'acme' });
  go();
  expect(await Promise.all(before)).toEqual([{ id: '1' }, undefined]);
  expect(await cache.get('acme/a')).toEqual({ id: '9' });
  expect(await cache.get('acme/new')).toEqual({ id: '8' });
});

it('keeps values when thousands of keys without one are asked for', async () => {
  await cache.get('acme/a');
  for (let i = 0; i < 20_000; i++) await cache.get(`guess/${i}`);
  reads = [];
  await cache.get('acme/a');
  expect(reads).toEqual([]);
});

it('uses an expired value while none can be read, if that is allowed', async () => {
  let isAway = false;
  const load = async (): Promise<Value> => {
    if (isAway) throw new Error('away');
    return { id: '1' };
  };
  const kept = new TenantCache(messaging, { load, ttlMs: 1, staleAfter, allowStaleOnError: true });
  const strict = new TenantCache(messaging, { load, ttlMs: 1, staleAfter });
  await Promise.all([kept.get('k'), strict.get('k')]);
  isAway = true;
  await new Promise((resolve) => setTimeout(resolve, 20));
  expect(await kept.get('k')).toEqual({ id: '1' });
  await expect(strict.get('k')).rejects.toThrow('away');
});
