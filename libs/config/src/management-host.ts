import { isIP } from 'node:net';

/** Endings of names that the public DNS never has. */
const PRIVATE_ENDINGS = ['.localhost', '.svc', '.cluster.local', '.internal'];

/**
 * Whether a request with this `Host` may read a port of operators. A web page can give its own name the address of the port (DNS
 * rebinding), and have the browser of an operator read it. Then `Host` is the name of the page. Addresses, names without a dot and
 * names of private zones are never that.
 * @param host the header; without one the caller is no browser
 * @param names further names, from MANAGEMENT_HOSTS
 */
export function isManagementHost(host: string | undefined, names: readonly string[]): boolean {
  if (host === undefined) return true;
  const name = host
    .replace(/:\d{1,5}$/, '')
    .replace(/\.$/, '')
    .toLowerCase();
  if (name.startsWith('[')) return isIP(name.slice(1, -1)) === 6;
  return (
    isIP(name) !== 0 ||
    !name.includes('.') ||
    PRIVATE_ENDINGS.some((ending) => name.endsWith(ending)) ||
    names.includes(name)
  );
}
