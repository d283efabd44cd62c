import { type ClientBase, Pool, type PoolClient, type PoolConfig } from 'pg';
import { type GivenUp, PostgresClient, type PostgresClientConfig } from './postgres-client.js';
import { runningTimeout } from './running-timeout.js';

declare module 'pg' {
  /** Missing in the types of this package. */
  interface Pool {
    /** The connections that it counts. The newest is the last. */
    readonly _clients: readonly ClientBase[];
    /** Makes a connection for a waiting caller. */
    newClient(waiting: WaitingCaller): void;
    /** Callers that wait, in their order. */
    readonly _pendingQueue: WaitingCaller[];
    /** Whether no further connection may be made. */
    _isFull(): boolean;
    /** Serves the first that waits, if there is an idle connection or room for a new one. */
    _pulseQueue(): void;
  }
}

export interface PostgresPoolConfig extends PoolConfig {
  /** Maximum number of connections, including those that Postgres has not closed yet. */
  max: number;
  /** How long a caller waits for a connection, in ms. An attempt to connect has twice this time at first. */
  connectMs: number;
  /** Longest time for an answer, in ms. Longer than the server's `statement_timeout`. Unset: no limit. */
  answerMs?: number | undefined;
  /** The URL leads to a pooler for transactions. */
  isPooled?: boolean;
  /** Called when a connection is given up, because Postgres has not answered in time. */
  onGivenUp?: ((what: GivenUp) => void) | undefined;
}

/** A caller that waits for a connection. */
interface WaitingCaller {
  callback: ConnectCallback;
  /** A connection that is made for it serves another caller. */
  timedOut: boolean;
}

type ConnectCallback = Parameters<Pool['connect']>[0];

/** Longest time for an attempt to connect, in ms. Postgres has the same limit for a client (`authentication_timeout`). */
const MAX_CONNECT_MS = 60_000;
/** No data was exchanged for this long. Firewalls forget silent connections, and a lost host is noticed. */
const KEEPALIVE_MS = 10_000;

/**
 * A pool whose number of connections is bounded at the server: a connection that was given up counts until Postgres has closed
 * it. So a slow server never gets more and more sessions. An attempt to connect continues when its caller no longer waits, and
 * serves the next one. Each attempt that a server has left unfinished doubles the limit of the next, so that one succeeds
 * however slow the server is.
 */
export class PostgresPool extends Pool {
  /** All connections that Postgres may have a session for. */
  private readonly open = new Set<ClientBase>();
  private isQueueing = false;
  private readonly waitMs: number;

  constructor({ connectMs, onGivenUp, ...config }: PostgresPoolConfig) {
    const firstMs = 2 * connectMs;
    const client: Pick<PostgresClientConfig, 'reachMs' | 'connectMs' | 'onGivenUp'> = {
      reachMs: connectMs,
      connectMs: firstMs,
      onGivenUp: (what) => {
        if (what === 'connect') this.setConnectMs((limitMs) => 2 * limitMs);
        onGivenUp?.(what);
      },
    };
    super({
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEPALIVE_MS,
      ...config,
      ...client,
      // The package would close the socket of an attempt after that time.
      connectionTimeoutMillis: 0,
      Client: PostgresClient as unknown as new () => ClientBase,
    });
    this.waitMs = connectMs;
    this.on('connect', () => this.setConnectMs(() => firstMs));
  }

  /** Connections that were given up or have ended, and that Postgres has not closed yet. */
  get closingCount(): number {
    return this.open.size - this.totalCount;
  }

  /** Rejects after `connectMs`. */
  override connect(): Promise<PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<PoolClient> | undefined {
    if (!callback) {
      return new Promise((resolve, reject) => {
        this.connect((error, client) => {
          if (client) resolve(client);
          else reject(error ?? new Error('No connection'));
        });
      });
    }
    // Each caller waits in the queue, where its time is limited.
    this.isQueueing = true;
    super.connect(callback);
    this.isQueueing = false;
    const waiting = this._pendingQueue.at(-1);
    if (waiting?.callback !== callback) return undefined; // The pool has ended.
    const limit = runningTimeout(() => this.endWaiting(waiting, callback), this.waitMs).unref();
    waiting.callback = (...outcome) => {
      clearInterval(limit);
      callback(...outcome);
    };
    process.nextTick(() => this._pulseQueue());
    return undefined;
  }

  override newClient(waiting: WaitingCaller): void {
    try {
      super.newClient(waiting);
    } catch (error) {
      // A file that the URL names, such as that of the CA, cannot be read.
      waiting.callback(error as Error, undefined, () => undefined);
      return;
    }
    const client = this._clients.at(-1) as PostgresClient;
    this.open.add(client);
    void client.closed.then(() => {
      this.open.delete(client);
      this._pulseQueue();
    });
  }

  override _isFull(): boolean {
    return this.isQueueing || this.open.size >= this.options.max;
  }

  private endWaiting(waiting: WaitingCaller, callback: ConnectCallback): void {
    const index = this._pendingQueue.indexOf(waiting);
    if (index !== -1) this._pendingQueue.splice(index, 1);
    waiting.timedOut = true;
    callback(new Error('timeout exceeded when trying to connect'), undefined, () => undefined);
  }

  /** The package passes its options to each new connection. */
  private setConnectMs(change: (limitMs: number) => number): void {
    const options = this.options as unknown as PostgresClientConfig;
    options.connectMs = Math.min(change(options.connectMs), MAX_CONNECT_MS);
  }
}
