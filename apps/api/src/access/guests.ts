import { type Principal, ProtocolError } from '@baton/a2a';
import type { HostBinding } from '@baton/database';
import { createHmac } from 'node:crypto';
import { networkOf } from '../http/network-of.js';
import type { CallRequest } from '../http/requests.js';

const HEADER = 'baton-guest';
const COOKIE = /(?:^|;)\s*baton_guest=([^;]*)/;
const SECRET = /^[A-Za-z0-9_-]{16,128}$/;
/** Enough to distinguish all guests, and short enough for a row of every task. */
const HASH_CHARACTERS = 22;

/**
 * Who a caller without a token is. The header `Baton-Guest` or the cookie `baton_guest`, a secret that its client keeps,
 * distinguishes guests; without one the address does. Only a hash of either is ever stored.
 * @param key of the hash, so that an address in the database cannot be found by hashing all addresses
 * @throws ProtocolError `invalid-params` for a secret of another form
 */
export function guestOf(
  { headers, ip }: Pick<CallRequest, 'headers' | 'ip'>,
  { tenantId, host }: Pick<HostBinding, 'tenantId' | 'host'>,
  key: Buffer | undefined,
): Principal {
  const secret = headers[HEADER] ?? COOKIE.exec(headers.cookie ?? '')?.[1];
  if (secret !== undefined && (typeof secret !== 'string' || !SECRET.test(secret))) {
    throw ProtocolError.invalidParams(
      'Baton-Guest',
      'must be 16 to 128 letters, digits, "-" and "_" that cannot be guessed, such as a UUID',
    );
  }
  const mark = secret === undefined ? `address ${networkOf(ip)}` : `secret ${secret}`;
  const hash = createHmac('sha256', key ?? tenantId)
    .update(`guest ${tenantId} ${host} ${mark}`)
    .digest('base64url');
  return { kind: 'guest', key: `guest:${host}:${hash.slice(0, HASH_CHARACTERS)}` };
}
