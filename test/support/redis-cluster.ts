import { Redis } from 'ioredis';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './ports.js';
import { findRedisBinary, type RunningRedis } from '../../apps/local/src/services/index.js';
import { startStockRedis } from './stock-redis.js';
import { untilReady } from './until.js';

const SLOTS = 16_384;
/** Three primaries, and a replica for each of the first two. */
const [PRIMARIES, NODES] = [3, 5];
/** Between two questions to servers that are not there yet. */
const RECONNECT_MS = 50;
const PASSWORD = 'of-the-cluster';
/** What Baton's keys and channels have between their braces. */
const TAG = 'baton';
/** The rights of docs/operating/redis.md. */
const RIGHTS =
  '~{baton}:* &{baton}:* +@read +@write +@connection +@scripting +@pubsub +@transaction -@dangerous +info +time' +
  ' +cluster|info +cluster|keyslot +cluster|slots';

interface Node extends RunningRedis {
  client: Redis;
  port: number;
  id: string;
  start(): Promise<RunningRedis>;
}

/** A Redis Cluster of three primaries. Two of them have a replica, and one of these two has the slot of Baton. */
export interface RedisCluster {
  /** As REDIS_URL has it. */
  url: string;
  /** Moves Baton's slot, with its keys one by one, to the other primary that has a replica. */
  moveSlot(): Promise<void>;
  /** `kill -9` to the primary of Baton's slot. Resolves when its replica has the slot, and it is back as a replica. */
  failOver(): Promise<void>;
  /** Forgets everything. */
  flush(): Promise<void>;
  /** Resolves when so many processes of Baton write to the primary of the slot, and listen to it. */
  hasAll(processes: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startRedisCluster(): Promise<RedisCluster> {
  const root = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  const nodes = await startNodes(root);
  const slot = await nodes[0]!.client.cluster('KEYSLOT', TAG);
  await form(nodes);
  const primaries = async (): Promise<Node[]> => {
    const are = await Promise.all(nodes.map((node) => isPrimary(node)));
    return nodes.filter((_, n) => are[n]);
  };
  const owner = (): Promise<Node> => ownerOf(nodes, slot);
  const set = (node: Node, ...words: (string | number)[]): Promise<unknown> =>
    node.client.call('CLUSTER', 'SETSLOT', slot, ...words);

  async function moveSlot(): Promise<void> {
    const all = await primaries();
    const from = await owner();
    const replicated = await Promise.all(all.map(async (node) => node !== from && (await hasReplica(node))));
    const to = all.find((_, n) => replicated[n])!;
    await set(to, 'IMPORTING', from.id);
    await set(from, 'MIGRATING', to.id);
    for (;;) {
      const keys = (await from.client.call('CLUSTER', 'GETKEYSINSLOT', slot, 10)) as string[];
      if (keys.length === 0) break;
      for (const key of keys) {
        await from.client.call('MIGRATE', '127.0.0.1', to.port, key, 0, 5_000, 'AUTH', PASSWORD);
      }
    }
    const others = all.filter((node) => node !== to && node !== from);
    for (const node of [to, from, ...others]) await set(node, 'NODE', to.id);
  }

  async function failOver(): Promise<void> {
    const old = await owner();
    await untilReady(() => hasReplica(old));
    old.process.kill();
    await old.process.exited;
    await untilReady(async () => (await owner()) !== old);
    old.process = (await old.start()).process;
    await untilReady(async () => hasReplica(await owner()));
  }

  // The nodes can do one of them at a time.
  let last: Promise<void> = Promise.resolve();
  const inTurn = (work: () => Promise<void>) => (): Promise<void> => (last = last.then(work));
  return {
    // The first port is closed. The last host is enough to find the others.
    url: `redis://baton:of-baton@127.0.0.1:${await freePort()}?cluster=true&hosts=127.0.0.1:${nodes.at(-1)!.port}`,
    moveSlot: inTurn(moveSlot),
    failOver: inTurn(failOver),
    flush: inTurn(async () => void (await (await owner()).client.flushall())),
    hasAll: async (processes) => {
      await untilReady(async () => {
        const channel = `{${TAG}}:control`;
        const { client } = await owner();
        const clients = (await client.call('CLIENT', 'LIST')) as string;
        const [, listening] = (await client.call('PUBSUB', 'SHARDNUMSUB', channel)) as [string, number];
        const writing = clients.split('name=baton-producer ').length - 1;
        return writing === processes && listening === processes && clients.includes('name=baton-consumer');
      });
    },
    stop: async () => {
      for (const { client } of nodes) client.disconnect();
      await Promise.all(nodes.map((node) => node.process.stop(5000)));
      rmSync(root, { recursive: true, force: true });
    },
  };
}

async function startNodes(root: string): Promise<Node[]> {
  const binary = findRedisBinary();
  if (!binary) throw new Error('There is no Redis here: ask DRIVERS first.');
  const ports = await Promise.all(Array.from({ length: 2 * NODES }, () => freePort()));
  return Promise.all(
    Array.from({ length: NODES }, async (_, n) => {
      const [port, busPort] = [ports[2 * n]!, ports[2 * n + 1]!];
      const start = (): Promise<RunningRedis> =>
        startStockRedis(binary, join(root, String(n)), {
          at: `redis://:${PASSWORD}@127.0.0.1:${port}`,
          settings: [
            'cluster-enabled yes',
            `cluster-port ${busPort}`,
            'cluster-node-timeout 1500',
            `masterauth ${PASSWORD}`,
            `user baton on >of-baton ${RIGHTS}`,
          ],
        });
      const running = await start();
      const client = new Redis(running.url, { retryStrategy: () => RECONNECT_MS, maxRetriesPerRequest: 0 });
      client.on('error', () => undefined);
      return { ...running, client, port, start, id: (await client.call('CLUSTER', 'MYID')) as string };
    }),
  );
}

/** Makes a Cluster of new nodes. */
async function form(nodes: readonly Node[]): Promise<void> {
  const [first, ...others] = nodes as [Node, ...Node[]];
  for (const { client, port } of others) {
    const busPort = (await client.config('GET', 'cluster-port'))[1]!;
    await first.client.call('CLUSTER', 'MEET', '127.0.0.1', port, busPort);
  }
  const share = Math.ceil(SLOTS / PRIMARIES);
  for (let n = 0; n < PRIMARIES; n++) {
    const last = Math.min(SLOTS, (n + 1) * share) - 1;
    await nodes[n]!.client.call('CLUSTER', 'ADDSLOTSRANGE', n * share, last);
  }
  // Those with a replica are the one that has the slot of Baton, and another one.
  const slot = await first.client.cluster('KEYSLOT', TAG);
  const owner = Math.floor(slot / share);
  for (const [n, replica] of nodes.slice(PRIMARIES).entries()) {
    const { id } = nodes[(owner + n) % PRIMARIES]!;
    await untilReady(async () => String(await replica.client.cluster('NODES')).includes(id));
    await untilReady(async () => (await replica.client.call('CLUSTER', 'REPLICATE', id)) === 'OK');
    await untilReady(async () =>
      (await replica.client.info('replication')).includes('master_link_status:up'),
    );
  }
  for (const { client } of nodes) {
    await untilReady(async () => {
      const info = await client.cluster('INFO');
      return info.includes('cluster_state:ok') && info.includes(`cluster_known_nodes:${NODES}`);
    });
  }
}

const isPrimary = async ({ client }: Node): Promise<boolean> =>
  ((await client.call('ROLE').catch(() => [''])) as string[])[0] === 'master';

/** Whether a replica has all that it has. */
const hasReplica = async ({ client }: Node): Promise<boolean> =>
  (await client.info('replication')).includes('state=online');

/** The node that claims the slot. */
async function ownerOf(nodes: readonly Node[], slot: number): Promise<Node> {
  for (const node of nodes) {
    const lines = String(await node.client.cluster('NODES').catch(() => ''));
    const ranges = lines
      .split('\n')
      .filter((line) => /myself,master/.test(line))
      .flatMap((line) => line.split(' ').slice(8))
      .map((range) => range.split('-').map(Number));
    if (ranges.some(([first = -1, last = first]) => first <= slot && slot <= last)) return node;
  }
  throw new Error('No node has the slot.');
}
