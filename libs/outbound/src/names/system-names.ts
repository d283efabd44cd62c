import { readFile } from 'node:fs/promises';
import type { ResolvedAddress } from './resolved-address.js';
import { isIP } from 'node:net';

const HOSTS_FILE =
  process.platform === 'win32'
    ? `${process.env['SystemRoot'] ?? 'C:\\Windows'}\\System32\\drivers\\etc\\hosts`
    : '/etc/hosts';
const RESOLV_CONF = '/etc/resolv.conf';
/** Both files are read again after this time. */
const READ_AGAIN_MS = 5_000;
/** Maximum search domains of resolv.conf(5). */
const MAX_SEARCH = 6;
/** Maximum `ndots` of resolv.conf(5). */
const MAX_NDOTS = 15;
/** RFC 6761, section 6.3. */
const LOCALHOST = /^(.+\.)?localhost$/;
const LOOPBACK: readonly ResolvedAddress[] = [
  { address: '127.0.0.1', family: 4 },
  { address: '::1', family: 6 },
];

/** The machine's own configuration of names. */
export interface SystemNamesState {
  /** The hosts file: addresses by name in lower case. */
  hosts: ReadonlyMap<string, readonly ResolvedAddress[]>;
  /** Domains to complete a name with that has fewer dots than `ndots` (resolv.conf). */
  search: readonly string[];
  ndots: number;
  /** The text of resolv.conf. It changes when the name servers change. */
  resolvConf: string;
}

/** Reads the hosts file and resolv.conf, as the system's own resolver does. Notices changes within 5 seconds. */
export class SystemNames {
  private state: Promise<SystemNamesState> | undefined;
  private readAt = -Infinity;

  /** The current state. A missing file counts as empty. */
  read(): Promise<SystemNamesState> {
    const now = performance.now();
    if (this.state && now - this.readAt < READ_AGAIN_MS) return this.state;
    this.readAt = now;
    this.state = readSystemNames();
    return this.state;
  }
}

async function readSystemNames(): Promise<SystemNamesState> {
  const [hosts, resolvConf] = await Promise.all([textOf(HOSTS_FILE), textOf(RESOLV_CONF)]);
  return { hosts: parseHosts(hosts), ...parseResolvConf(resolvConf), resolvConf };
}

const textOf = (path: string): Promise<string> => readFile(path, 'utf8').catch(() => '');

/** Addresses by name (hosts(5)). `localhost` is always there. */
export function parseHosts(text: string): Map<string, ResolvedAddress[]> {
  const hosts = new Map<string, ResolvedAddress[]>();
  for (const line of text.split('\n')) {
    const [address = '', ...names] = (line.split('#')[0] ?? '').trim().split(/\s+/);
    const family = isIP(address);
    if (family === 0) continue;
    for (const name of names.map((each) => each.toLowerCase())) {
      hosts.set(name, [...(hosts.get(name) ?? []), { address, family }]);
    }
  }
  return hosts;
}

/** The search list and `ndots` (resolv.conf(5)). */
export function parseResolvConf(text: string): Pick<SystemNamesState, 'search' | 'ndots'> {
  let search: string[] = [];
  let ndots = 1;
  for (const line of text.split('\n')) {
    const [key, ...values] = line.trim().split(/\s+/);
    if (key === 'search' || key === 'domain') search = values.slice(0, MAX_SEARCH);
    const option = key === 'options' ? values.find((value) => /^ndots:\d{1,3}$/.test(value)) : undefined;
    if (option !== undefined) ndots = Math.min(Number(option.slice('ndots:'.length)), MAX_NDOTS);
  }
  return { search: search.filter((domain) => domain !== '.'), ndots };
}

/** Addresses of a name that needs no name server, if there are any. */
export function localAddresses(
  { hosts }: Pick<SystemNamesState, 'hosts'>,
  name: string,
): readonly ResolvedAddress[] | undefined {
  return hosts.get(name) ?? (LOCALHOST.test(name) ? LOOPBACK : undefined);
}

/** The full names to ask name servers for, in their order. A name that ends with a dot is complete. */
export function candidates({ search, ndots }: Pick<SystemNamesState, 'search' | 'ndots'>, name: string) {
  if (name.endsWith('.')) return [name.slice(0, -1)];
  const completed = search.map((domain) => `${name}.${domain.replace(/\.$/, '')}`);
  const dots = name.split('.').length - 1;
  return dots >= ndots ? [name, ...completed] : [...completed, name];
}
