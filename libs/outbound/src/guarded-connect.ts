import { lookup as systemLookup } from 'node:dns';
import { type LookupFunction, isIP } from 'node:net';
import { promisify } from 'node:util';
import { buildConnector } from 'undici';
import type { AllowList } from './allow-list.js';
import { OutboundRefused } from './failure-reason.js';
import { isPublicAddress, reachedAddress } from './public-address.js';

/** An address of a host. */
export interface ResolvedAddress {
  address: string;
  family: number;
}

/** Finds all addresses of a host name. */
export type Resolve = (hostname: string) => Promise<ResolvedAddress[]>;

const CONNECT_TIMEOUT_MS = 10_000;

/** Resolves names with the system: hosts file, then DNS. */
const resolveWithSystem: Resolve = (hostname) => promisify(systemLookup)(hostname, { all: true });

/**
 * Makes connections for undici, only to allowed addresses. A name is resolved once, and the socket connects to the
 * checked addresses. That prevents DNS rebinding. Addresses that are not allowed are skipped. If none is left, the
 * connection fails with OutboundRefused. A name that does not exist fails with the same error, so that tenants can not
 * find out which names the operator's network has.
 *
 * @param onRefused called with the host and the real reason, for the operator
 */
export function guardedConnect(
  allowed: AllowList,
  resolve = resolveWithSystem,
  onRefused: (host: string, reason: string) => void = () => undefined,
): buildConnector.connector {
  return (options, callback) => {
    const { hostname, protocol } = options;
    const port = options.port || (protocol === 'https:' ? '443' : '80');
    const mayReach = ({ address }: { address: string }): boolean => {
      const reached = reachedAddress(address);
      return isPublicAddress(reached) || allowed.allows(reached, hostname, port);
    };
    // Sockets look up only names. An address in the URL is checked here.
    if (isIP(hostname) && !mayReach({ address: hostname })) {
      onRefused(hostname, 'the address is not public');
      callback(refusal(hostname), null);
      return;
    }
    const find: Resolve = async (name) => {
      const found = await resolve(name).catch((error: unknown) => {
        // What the operator has named is no secret, and may be away for a moment.
        if ((error as NodeJS.ErrnoException).code !== 'ENOTFOUND' || allowed.allowsName(name, port))
          throw error;
        onRefused(name, 'the name does not exist');
        return undefined;
      });
      const addresses = found?.filter(mayReach) ?? [];
      if (found && addresses.length === 0) onRefused(name, 'none of its addresses is public');
      return addresses;
    };
    const lookup = guardedLookup(find);
    buildConnector({ timeout: CONNECT_TIMEOUT_MS, lookup })(options, callback);
  };
}

/** @param find the addresses of a name that may be called */
function guardedLookup(find: Resolve): LookupFunction {
  return (hostname, options, callback) => {
    find(hostname).then(
      (addresses) => {
        const [first] = addresses;
        if (!first) callback(refusal(hostname), '');
        else if (options.all) callback(null, addresses);
        else callback(null, first.address, first.family);
      },
      (error: unknown) => callback(error as NodeJS.ErrnoException, ''),
    );
  };
}

/** The message shows no address, and is the same for a name that does not exist. */
const refusal = (host: string): OutboundRefused =>
  new OutboundRefused(
    `"${host}" is not at a public address, so agents may not call it. The operator of this server can allow it ` +
      `with OUTBOUND_ALLOW${isIP(host) ? '' : '. Check the spelling of its name'}`,
  );
