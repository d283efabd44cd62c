import { parseRedisUrl, type RedisHost } from '@baton/config';
import type { RedisOptions } from 'ioredis';
import { readFileSync } from 'node:fs';
import { connectionProblem } from '../../quiet-log.js';
import { clusterConnector } from './cluster-connector.js';
import { PrimaryConnector } from './primary-connector.js';
import { ServerConnector } from './server-connector.js';

/** Where Redis is, and how every connection reaches it. */
export interface RedisServer {
  /** Such as `127.0.0.1:6379`: without user or password. */
  address: string;
  options: RedisOptions;
  /** Prefix of every key and channel of Baton. In a Cluster its braces keep all of them in one slot. */
  prefix: string;
  /** Whether it is a primary of a Redis Cluster: its channels are those of its slots. */
  isCluster: boolean;
}

/** The connector skips a Sentinel that does not answer within this time. */
const SENTINEL_MS = 2_000;

const COMMON: RedisOptions = {
  // After a fail-over the old primary is a replica: a connection to it must go, so that the next one finds the new primary.
  reconnectOnError: (error) => error.message.includes('READONLY'),
};
const CLUSTER: RedisOptions = {
  // As above; or the slot has another primary, or this one has lost the others.
  reconnectOnError: (error) => /^(MOVED|READONLY|CLUSTERDOWN)\b/.test(error.message),
};

const textOf = ({ host, port }: RedisHost): string => `${host.includes(':') ? `[${host}]` : host}:${port}`;

/**
 * Reads the URL and the files that it names (docs/operating/redis.md). Throws an Error with the remedy if a file cannot
 * be read.
 * @param namespace keeps installations on one server apart
 */
export function redisServer(url: string, namespace: string): RedisServer {
  const { tls: files, sentinel, cluster, ...single } = parseRedisUrl(url);
  const tls = files && {
    tls: {
      ...fileOf('ca', 'cacert', files),
      ...fileOf('cert', 'cert', files),
      ...fileOf('key', 'key', files),
    },
  };
  const { host: _, port: __, db, ...user } = single;
  if (cluster) {
    const account = { ...user, ...tls };
    const prefix = `{${namespace}}`;
    const Connector = clusterConnector(cluster, account, prefix);
    const address = `the Cluster of ${cluster.map(textOf).join(', ')}`;
    return { address, prefix, isCluster: true, options: { ...account, ...CLUSTER, Connector } };
  }
  const plain = { prefix: namespace, isCluster: false };
  if (!sentinel) {
    const Connector = ServerConnector as RedisOptions['Connector'];
    return { ...plain, address: textOf(single), options: { ...single, ...tls, ...COMMON, Connector } };
  }
  return {
    ...plain,
    address: `${sentinel.name} of Sentinel (${sentinel.hosts.map(textOf).join(', ')})`,
    options: {
      ...user,
      db,
      ...tls,
      ...COMMON,
      sentinels: sentinel.hosts,
      name: sentinel.name,
      ...(sentinel.username && { sentinelUsername: sentinel.username }),
      ...(sentinel.password && { sentinelPassword: sentinel.password }),
      ...(tls && { enableTLSForSentinelMode: true, sentinelTLS: tls.tls }),
      Connector: PrimaryConnector as RedisOptions['Connector'],
      sentinelCommandTimeout: SENTINEL_MS,
      sentinelRetryStrategy: (tries) => Math.min(50 * tries, 1_000),
    },
  };
}

function fileOf<O extends string, P extends string>(
  option: O,
  parameter: P,
  files: { [name in P]?: string },
): { [name in O]?: Buffer } {
  const file = files[parameter];
  if (file === undefined) return {};
  try {
    return { [option]: readFileSync(file) } as { [name in O]: Buffer };
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(
      `The file ${file} of REDIS_URL (${parameter}) cannot be read (${code}): name one that this process can read`,
    );
  }
}

const CERTIFICATE_CODE =
  /^(CERT_|ERR_TLS_CERT_|DEPTH_ZERO_SELF_SIGNED_CERT|SELF_SIGNED_CERT_|UNABLE_TO_(GET_ISSUER|VERIFY))/;

/** Whether Node.js refused the certificate of the server. It may accept the next one. */
export const isCertificateRefused = (error: unknown): boolean =>
  error instanceof Error && 'code' in error && CERTIFICATE_CODE.test(String(error.code));

/** Why a connection failed, in one line with the remedy if the reason alone does not show it. */
export function redisReasonOf(error: unknown): string {
  const problem = connectionProblem(error);
  if (isCertificateRefused(error)) {
    return `its certificate is refused (${problem}): name the file of its CA in the URL (cacert), and a host of the certificate`;
  }
  if (!problem.startsWith('All sentinels are unreachable')) return problem;
  // ioredis adds when it tries again, and an error of a Sentinel if there was one.
  const reason = /Last error: (.*)/.exec(problem)?.[1] ?? '';
  return reason === '' || reason.includes('No such master')
    ? 'no Sentinel knows a primary of this name: correct the parameter sentinel of the URL'
    : `no Sentinel answers: ${reason}`;
}
