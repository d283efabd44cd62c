import type { Environment } from '@baton/config';
import { counter, gauge, type Logger, type Metrics, PacedLog } from '@baton/telemetry';
import type { Server } from 'node:http';
import type { Socket } from 'node:net';
import { Connection } from './connection.js';
import { networkOf } from './network-of.js';
import { inNetworks } from './networks.js';
import { openFilesLimit, ownFiles } from './open-files.js';

/** Maximum number of connections of the management port. Its callers never compete with those of the other ports. */
const MANAGEMENT_CONNECTIONS = 64;
/** Connections beyond the limit that are answered: at `/healthz` and `/readyz`, elsewhere with 503. */
const SPARE_CONNECTIONS = 32;
/** How long such a connection may stay open. */
const SPARE_MS = 5_000;
/** The largest part of all connections that one address may have by default. */
const SHARE = 0.25;
/** Share of a limit above which its silent connections are closed. */
const SHORT = 0.8;
/** A connection that is silent for this long makes room for others. */
const SILENT_MS = 10_000;
/** How often silent connections are closed while there are too many: a burst waits no longer than this. */
const SWEEP_MS = 1_000;

const CONNECTIONS = gauge('baton_connections', 'Open connections of callers, by port', ['port']);
const REFUSED = counter(
  'baton_connections_refused_total',
  'Connections that were refused because all, or all of their address, were open',
  ['port', 'limit'],
  (['public', 'management'] as const).flatMap((port) => [
    { port, limit: 'total' },
    { port, limit: 'address' },
  ]),
);

/** Which limit refuses a connection. */
type Exceeded = 'total' | 'address';

/** The bounds of the connections of some ports together. */
export interface ConnectionBounds {
  /** Their label in metrics and logs. */
  readonly port: 'public' | 'management';
  readonly max: number;
  /** Of one address (IPv6: one /64 network). Trusted proxies have no such limit. */
  readonly maxOfAddress: number;
  /** Beyond `max`, for probes. */
  readonly spare: number;
  readonly trustedProxies: readonly string[];
  /** What an operator can do if all are open. */
  readonly remedy: string;
}

/**
 * Limits the open connections, of each address and in total, over all ports that share it. Each connection is an open
 * file: without any left, the process could not reach Postgres. When a limit is nearly reached, its silent connections are closed.
 */
export class ConnectionLimit {
  private readonly counted = new Map<Socket, Connection>();
  private readonly spare = new Set<Socket>();
  private readonly byAddress = new Map<string, number>();
  private readonly silent = new Set<Connection>();
  private readonly isProxy: (address: string) => boolean;
  private readonly refused: { inc(labels: { port: string; limit: Exceeded }): void };
  private readonly refusals = new PacedLog();
  private sweeping: NodeJS.Timeout | undefined;

  constructor(
    readonly bounds: ConnectionBounds,
    private readonly logger: Logger,
    metrics: Metrics,
  ) {
    this.isProxy = inNetworks(bounds.trustedProxies);
    this.refused = metrics.get(REFUSED);
    metrics.onScrape(async () => metrics.get(CONNECTIONS).set({ port: bounds.port }, this.counted.size));
  }

  /** Limits the connections of an HTTP server. */
  limit(server: Server): void {
    // Before Node's own listener, which would make a parser for a connection that is refused.
    server.prependListener('connection', (socket) => {
      if (!this.open(socket)) this.openSpare(socket);
    });
    server.on('request', ({ socket }, response) => {
      const connection = this.counted.get(socket);
      if (!connection) return;
      connection.began();
      response.once('close', () => connection.ended());
    });
  }

  /** Counts a connection until it is closed. @returns undefined if there are too many: the connection is then the caller's to close */
  open(socket: Socket): Connection | undefined {
    const { remoteAddress = '' } = socket;
    const address = this.isProxy(remoteAddress) ? undefined : networkOf(remoteAddress);
    const exceeded = this.exceededBy(address);
    if (exceeded) {
      this.refuse(exceeded, address);
      return undefined;
    }
    const connection = new Connection(socket, address, this.silent);
    this.counted.set(socket, connection);
    this.count(address, 1);
    this.sweeping ??= setInterval(() => this.closeSilent(), SWEEP_MS).unref();
    socket.once('close', () => {
      this.counted.delete(socket);
      this.silent.delete(connection);
      this.count(address, -1);
      if (this.counted.size > 0) return;
      clearInterval(this.sweeping);
      this.sweeping = undefined;
    });
    return connection;
  }

  /** Whether a connection is beyond the limit: it gets answers for probes only. */
  isSpare(socket: Socket): boolean {
    return this.spare.has(socket);
  }

  private exceededBy(address: string | undefined): Exceeded | undefined {
    const { max, maxOfAddress } = this.bounds;
    if (this.counted.size >= max) return 'total';
    return address !== undefined && this.countOf(address) >= maxOfAddress ? 'address' : undefined;
  }

  /** A new connection takes the room of the oldest, so that a probe gets its answer while others wait. */
  private openSpare(socket: Socket): void {
    const { spare } = this;
    spare.add(socket);
    if (spare.size > this.bounds.spare) {
      const [oldest = socket] = spare;
      spare.delete(oldest);
      oldest.destroy();
    }
    const late = setTimeout(() => socket.destroy(), SPARE_MS).unref();
    socket.once('close', () => {
      clearTimeout(late);
      spare.delete(socket);
    });
  }

  private countOf(address: string): number {
    return this.byAddress.get(address) ?? 0;
  }

  private count(address: string | undefined, change: 1 | -1): void {
    if (address === undefined) return;
    const count = this.countOf(address) + change;
    if (count > 0) this.byAddress.set(address, count);
    else this.byAddress.delete(address);
  }

  private closeSilent(): void {
    const { max, maxOfAddress } = this.bounds;
    const before = performance.now() - SILENT_MS;
    const isShort = this.counted.size > max * SHORT;
    for (const { socket, address, silentSince } of this.silent) {
      if (silentSince > before) return;
      // A proxy keeps its connections for other callers.
      if (address === undefined) continue;
      if (isShort || this.countOf(address) > maxOfAddress * SHORT) socket.destroy();
    }
  }

  private refuse(limit: Exceeded, address: string | undefined): void {
    const { port, max, maxOfAddress, remedy } = this.bounds;
    this.refused.inc({ port, limit });
    const text =
      limit === 'total'
        ? `connections refused, all ${String(max)} are open: ${remedy}`
        : `connections of an address refused, ${String(maxOfAddress)} are open: if it is a proxy, add it to TRUSTED_PROXIES`;
    this.refusals.note((refused) => this.logger.warn(text, { port, limit, address, refused }));
  }
}

/** The limit of the ports that callers use, HTTP and gRPC together. Logs if the limit of open files lowers that of the settings. */
export function publicConnections(
  environment: Environment,
  logger: Logger,
  metrics: Metrics,
  openFiles = openFilesLimit(),
): ConnectionLimit {
  const { maxConnections, trustedProxies } = environment;
  const reserved = ownFiles(environment) + MANAGEMENT_CONNECTIONS + SPARE_CONNECTIONS;
  const max = Math.max(Math.min(maxConnections, openFiles - reserved), 1);
  const remedy =
    max < maxConnections
      ? 'raise the limit of open files (ulimit -n, LimitNOFILE=, --ulimit nofile=) or add API processes'
      : 'raise MAX_CONNECTIONS or add API processes';
  if (max < maxConnections)
    logger.warn(
      `this process accepts at most ${String(max)} connections, fewer than MAX_CONNECTIONS: ${remedy}`,
      { openFiles },
    );
  const maxOfAddress = Math.min(environment.maxConnectionsPerAddress ?? Math.ceil(max * SHARE), max);
  const bounds = {
    port: 'public',
    max,
    maxOfAddress,
    spare: SPARE_CONNECTIONS,
    trustedProxies,
    remedy,
  } as const;
  return new ConnectionLimit(bounds, logger, metrics);
}

/** The limit of the management port. */
export function managementConnections(logger: Logger, metrics: Metrics): ConnectionLimit {
  const max = MANAGEMENT_CONNECTIONS;
  const remedy = 'close connections to MANAGEMENT_PORT, which are for operators and their tools';
  const bounds = {
    port: 'management',
    max,
    maxOfAddress: max,
    spare: 0,
    trustedProxies: [],
    remedy,
  } as const;
  return new ConnectionLimit(bounds, logger, metrics);
}
