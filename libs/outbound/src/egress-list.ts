import { type EgressPattern, parseEgressPattern } from '@baton/config';
import type { IPv4, IPv6 } from 'ipaddr.js';
import { plainHost } from './allow-list.js';

/** Patterns of destinations. */
export class EgressList {
  private readonly patterns: readonly EgressPattern[];

  /** Throws an Error for a text that is no pattern: a list with a mistake must not let anything pass. */
  constructor(texts: readonly string[]) {
    this.patterns = texts.map((text) => {
      const pattern = parseEgressPattern(text);
      if (!pattern) throw new Error(`"${text.slice(0, 100)}" is no pattern of destinations`);
      return pattern;
    });
  }

  get isEmpty(): boolean {
    return this.patterns.length === 0;
  }

  /** Whether some hosts are known by their address only. */
  get hasNetworks(): boolean {
    return this.patterns.some(({ network }) => network !== undefined);
  }

  /** Whether a pattern names this host, with any address. */
  hasName(host: string, port: string): boolean {
    const plain = plainHost(host);
    return this.patterns.some(
      (pattern) =>
        pattern.name !== undefined &&
        (pattern.port ?? port) === port &&
        (pattern.subdomains ? plain.endsWith(`.${pattern.name}`) : plain === pattern.name),
    );
  }

  hasAddress(address: IPv4 | IPv6, port: string): boolean {
    return this.patterns.some(
      ({ network, port: only = port }) =>
        network !== undefined &&
        only === port &&
        network[0].kind() === address.kind() &&
        address.match(network[0], network[1]),
    );
  }
}
