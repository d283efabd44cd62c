import { parseRedisUrl } from '@baton/config';
import type { RedisOptions } from 'ioredis';
import { readFileSync } from 'node:fs';
import { reasonOf } from '../../channels.js';

/** Where Redis is, and how every connection reaches it. */
export interface RedisServer {
  /** Such as `127.0.0.1:6379`: without user or password. */
  address: string;
  options: RedisOptions;
}

/**
 * Reads the URL and the files that it names (docs/operating/redis.md). Throws an Error that says what to do if a file can't
 * be read.
 */
export function redisServer(url: string): RedisServer {
  const { tls, ...options } = parseRedisUrl(url);
  const { host, port } = options;
  return {
    address: `${host.includes(':') ? `[${host}]` : host}:${port}`,
    options: {
      ...options,
      ...(tls && {
        tls: { ...fileOf('ca', 'cacert', tls), ...fileOf('cert', 'cert', tls), ...fileOf('key', 'key', tls) },
      }),
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
  const said = reasonOf(error);
  if (isCertificateRefused(error)) {
    return `its certificate is refused (${said}): name the file of its CA in the URL (cacert), and a host of the certificate`;
  }
  return said;
}
