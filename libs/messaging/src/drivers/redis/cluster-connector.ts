import type { RedisHost } from '@baton/config';
import { AbstractConnector, Redis, type RedisOptions } from 'ioredis';
import { isIP, type Socket } from 'node:net';
import { setTimeout as delay } from 'node:timers/promises';
import { connectionProblem } from '../../quiet-log.js';
import { DISCONNECT_MS, openSocket } from './open-socket.js';

/** The connector skips a node that does not answer within this time. */
const NODE_MS = 2_000;
type ConnectorConstructor = NonNullable<RedisOptions['Connector']>;

/** A range in the answer to `CLUSTER SLOTS`: its first and last slot, the primary, the replicas. */
type SlotRange = [
  first: number,
  last: number,
  ...nodes: [host: string | null, port: number, ...rest: unknown[]][],
];

/**
 * Connects to the primary of a Redis Cluster that has the slot of `key`: all keys and channels of Baton have that slot
 * (docs/inside/adr/0046-one-slot-of-a-cluster.md). Asks again whenever a connection is lost, and until there is a primary.
 * @param hosts some nodes; the others are learnt from them
 * @param account how to sign in to each node
 */
export function clusterConnector(
  hosts: readonly RedisHost[],
  account: RedisOptions,
  key: string,
): ConnectorConstructor {
  let known: readonly RedisHost[] = hosts;

  /** Asks one node after another. Rejects if none returns a primary. */
  async function findPrimary(): Promise<RedisHost> {
    let failure = 'it has no primary for the slot of Baton';
    for (const node of known) {
      const client = new Redis({
        ...account,
        ...node,
        tls: tlsFor(node),
        lazyConnect: true,
        enableReadyCheck: false,
        connectionName: 'baton-cluster',
        connectTimeout: NODE_MS,
        commandTimeout: NODE_MS,
        maxRetriesPerRequest: 0,
        retryStrategy: null,
      });
      // The error of the connection. That of the command has no reason.
      let refused: unknown;
      client.on('error', (error: unknown) => (refused = error));
      try {
        await client.connect();
        const [info, slot, ranges] = await Promise.all([
          client.cluster('INFO'),
          client.cluster('KEYSLOT', key),
          client.cluster('SLOTS') as Promise<unknown> as Promise<SlotRange[]>,
        ]);
        // A node that is cut off from the others has an old state.
        if (!info.includes('cluster_state:ok')) throw new Error('the Cluster is down');
        const found = ranges.flatMap(([first, last, ...nodes]) =>
          nodes.map(([host, port], i) => ({
            isPrimary: i === 0 && first <= slot && slot <= last,
            node: { host: host || node.host, port },
          })),
        );
        const others = found.map((each) => each.node);
        known = [
          ...new Map([...others, ...hosts].map((each) => [`${each.host} ${each.port}`, each])).values(),
        ];
        const primary = found.find(({ isPrimary }) => isPrimary);
        if (primary) return primary.node;
      } catch (error) {
        failure = connectionProblem(refused ?? error);
      } finally {
        // A connection that was refused is closed; ioredis would wait for that once more.
        if (client.status !== 'end') client.disconnect();
      }
    }
    throw new Error(`no node of the Cluster leads to a primary: ${failure}`);
  }

  /** Nodes are often known by their addresses, and certificates by names. */
  function tlsFor({ host }: RedisHost): RedisOptions['tls'] {
    const name = hosts.find((each) => isIP(each.host) === 0)?.host;
    return account.tls && { ...account.tls, ...(isIP(host) > 0 && name && { servername: name }) };
  }

  return class ClusterConnector extends AbstractConnector {
    constructor() {
      super(DISCONNECT_MS);
    }

    override async connect(report: (type: string, error: Error) => void): Promise<Socket> {
      this.connecting = true;
      for (let tries = 1; ; tries++) {
        const primary = await findPrimary().catch((error: unknown) => report('error', error as Error));
        if (this.isGivenUp) throw new Error('Connection is closed.');
        if (primary) return this.open(primary);
        await delay(Math.min(50 * tries, 1_000), undefined, { ref: false });
      }
    }

    /** ioredis has disconnected meanwhile. */
    private get isGivenUp(): boolean {
      return !this.connecting;
    }

    private open(node: RedisHost): Socket {
      const tls = tlsFor(node);
      const to = { ...node, family: account.family ?? 0 };
      this.stream = openSocket(to, tls, (error) => (this.firstError = error));
      return this.stream;
    }
  };
}
