import getPort from 'get-port';
import { Redis } from 'ioredis';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { findRedisBinary, type RunningRedis, startRedis } from '../../apps/local/src/services/index.js';

const SLOTS = 16_384;
/** Between two questions to servers that are not there yet. */
const ASK_MS = 50;
/** The rights of docs/operating/redis.md. */
const RIGHTS =
  '~{baton}:* &{baton}:* +@read +@write +@connection +@scripting +@pubsub +@transaction -@dangerous +info +time' +
  ' +cluster|info +cluster|keyslot +cluster|slots';
/** What Baton's keys and channels have between their braces. */
const TAG = 'baton';

interface Node extends RunningRedis {
  client: Redis;
  port: number;
  busPort: number;
  id: string;
}

/** A Redis Cluster of three primaries. The one that does not have Baton's slot at first, and gets it, has a replica. */
export interface RedisCluster {
  /** As REDIS_URL has it. */
  url: string;
  /** Moves Baton's slot with its keys, one by one, to the primary that has a replica. */
  moveSlot(): Promise<void>;
  /** `kill -9` to the primary with a replica. Resolves when the replica has its slots. */
  crashPrimary(): Promise<void>;
  /** Resolves when so many processes of Baton write to the primary of the slot, and listen to it. */
  hasAll(processes: number): Promise<void>;
  stop(): Promise<void>;
}

export async function startRedisCluster(): Promise<RedisCluster> {
  const binary = findRedisBinary();
  if (!binary) throw new Error('There is no Redis here: ask DRIVERS first.');
  const root = mkdtempSync(join(tmpdir(), `baton-test-${process.pid}-`));
  const password = 'of-the-cluster';
  const ports = await Promise.all(Array.from({ length: 8 }, () => getPort({ host: '127.0.0.1' })));
  const nodes: Node[] = await Promise.all(
    [0, 1, 2, 3].map(async (n) => {
      const [port, busPort] = [ports[2 * n]!, ports[2 * n + 1]!];
      const running = await startRedis(binary, join(root, String(n)), {
        at: `redis://:${password}@127.0.0.1:${port}`,
        settings: [
          ...['cluster-enabled yes', `cluster-port ${busPort}`, 'cluster-node-timeout 1500'],
          `masterauth ${password}`,
          `user baton on >of-baton ${RIGHTS}`,
        ],
      });
      const client = new Redis(running.url, { retryStrategy: () => null });
      client.on('error', () => undefined);
      return { ...running, client, port, busPort, id: await client.cluster('MYID') };
    }),
  );
  const until = async (condition: () => Promise<boolean>): Promise<void> => {
    while (!(await condition().catch(() => false))) await delay(ASK_MS);
  };
  const [one] = nodes as [Node, ...Node[]];
  for (const { port, busPort } of nodes.slice(1))
    await one.client.call('CLUSTER', 'MEET', '127.0.0.1', port, busPort);
  const slot = await one.client.cluster('KEYSLOT', TAG);
  const primaries = nodes.slice(0, 3);
  const share = Math.ceil(SLOTS / 3);
  await Promise.all(
    primaries.map(({ client }, n) =>
      client.call('CLUSTER', 'ADDSLOTSRANGE', n * share, Math.min(SLOTS, (n + 1) * share) - 1),
    ),
  );
  const from = primaries[Math.floor(slot / share)]!;
  const to = primaries.find((node) => node !== from)!;
  const replica = nodes[3]!;
  await until(async () => String(await replica.client.cluster('NODES')).includes(to.id));
  await until(async () => (await replica.client.call('CLUSTER', 'REPLICATE', to.id)) === 'OK');
  await until(async () => (await replica.client.info('replication')).includes('master_link_status:up'));
  for (const { client } of nodes) {
    await until(async () => {
      const info = await client.cluster('INFO');
      return info.includes('cluster_state:ok') && info.includes('cluster_known_nodes:4');
    });
  }
  const set = (node: Node, ...words: (string | number)[]): Promise<unknown> =>
    node.client.call('CLUSTER', 'SETSLOT', slot, ...words);
  return {
    // Nobody is at the first; the last one is enough to find the others.
    url: `redis://baton:of-baton@127.0.0.1:${await getPort({ host: '127.0.0.1' })}?cluster=true&hosts=127.0.0.1:${replica.port}`,
    moveSlot: async () => {
      await set(to, 'IMPORTING', from.id);
      await set(from, 'MIGRATING', to.id);
      for (;;) {
        const keys = (await from.client.call('CLUSTER', 'GETKEYSINSLOT', slot, 10)) as string[];
        if (keys.length === 0) break;
        for (const key of keys) {
          await from.client.call('MIGRATE', '127.0.0.1', to.port, key, 0, 5_000, 'AUTH', password);
        }
      }
      for (const node of [to, from, ...primaries.filter((each) => each !== to && each !== from)])
        await set(node, 'NODE', to.id);
    },
    crashPrimary: async () => {
      to.process.kill();
      await to.process.exited;
      await until(async () => ((await replica.client.call('ROLE')) as string[])[0] === 'master');
    },
    hasAll: async (processes) => {
      await until(async () => {
        const channel = `{${TAG}}:control`;
        const owner = await ownerOf(nodes, slot);
        const clients = (await owner.client.call('CLIENT', 'LIST')) as string;
        const [, listening] = (await owner.client.call('PUBSUB', 'SHARDNUMSUB', channel)) as [string, number];
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

/** The node that says of itself that it has the slot. */
async function ownerOf(nodes: readonly Node[], slot: number): Promise<Node> {
  for (const node of nodes) {
    const lines = (await node.client.cluster('NODES').catch(() => '')) as string;
    const ranges = lines
      .split('\n')
      .filter((line) => /myself,master/.test(line))
      .flatMap((line) => line.split(' ').slice(8))
      .map((range) => range.split('-').map(Number));
    if (ranges.some(([first = -1, last = first]) => first <= slot && slot <= last)) return node;
  }
  throw new Error('No node has the slot.');
}
