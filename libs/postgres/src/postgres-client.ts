import type { Socket } from 'node:net';
import { Client, type ClientConfig, Connection } from 'pg';
import { runningTimeout } from './running-timeout.js';

declare module 'pg' {
  /** Missing in the types of this package. */
  interface Connection {
    connect(port: number | string, host?: string): void;
    requestSsl(): void;
    cancel(processId: number, secretKey: number): void;
  }
  interface Client {
    /** Id of the server's process for this session, for a request to cancel its statement. */
    readonly processID: number | null;
    readonly secretKey: number | null;
    readonly sslNegotiation: string;
    /** The statement that is under way. */
    _getActiveQuery(): unknown;
  }
}

/** The given-up work: a statement, or an attempt to connect. */
export type GivenUp = 'statement' | 'connect';

export interface PostgresClientConfig extends ClientConfig {
  /** Longest time for an answer, in ms. Longer than the server's `statement_timeout`. Unset: no limit. */
  answerMs?: number | undefined;
  /** Longest time until a server is reached, in ms. */
  reachMs: number;
  /** Longest time until it has begun a session, in ms. */
  connectMs: number;
  /** The URL leads to a pooler: it forgets a request to cancel when the connection that it is about closes. */
  isPooled?: boolean;
  /** Called when the connection is given up. */
  onGivenUp?: (what: GivenUp) => void;
}

/** Longest time for the answer to a request to cancel. */
const CANCEL_MS = 5_000;
/**
 * A server that has not closed a connection after this time is unreachable from here. There, `statement_timeout`, the keepalive
 * of `SERVER_SOCKET` and `idle_in_transaction_session_timeout` have ended the session.
 */
const GONE_MS = 30_000;

/** When the connection of an error is closed. */
const closings = new WeakMap<object, Promise<void>>();

/**
 * Resolves when Postgres no longer executes the statement that failed with this error. That is at once. After a timeout it is when Postgres
 * has ended the session. Work that repeats waits for it, so that a slow server does not get the same statement again and again. Never
 * rejects, and takes 30 s at most.
 */
export async function untilStatementEnded(error: unknown): Promise<void> {
  for (let each = error; each instanceof Error; each = each.cause) await closings.get(each);
}

/**
 * A session of Postgres. If Postgres does not answer in time, this client cancels the statement at the server and ends the
 * session. The driver alone would close the socket: Postgres does not notice that while it executes a statement or starts a
 * session, and each further try would be one more of them at the server.
 */
export class PostgresClient extends Client {
  /** Resolves when Postgres has closed the connection, which it does when it has ended the session. */
  readonly closed: Promise<void>;
  private readonly config: PostgresClientConfig;
  /** When the statement that is under way became the first in line, on the clock of `performance.now()`. */
  private since = 0;
  private timer: NodeJS.Timeout | undefined;
  /** Set: it is given up. Resolves when the server has been asked to cancel. */
  private leaving: Promise<void> | undefined;

  constructor(config: PostgresClientConfig) {
    super(withoutTimeouts(config));
    this.config = config;
    this.closed = new Promise((resolve) => {
      this.connection.once('end', () => {
        clearTimeout(this.timer);
        resolve();
      });
    });
    this.connection.on('readyForQuery', () => (this.since = performance.now()));
    // An error between two statements must not end the process: the next statement gets it.
    this.on('error', () => undefined);
  }

  override connect(): Promise<Client>;
  override connect(callback: (error: Error | null) => void): void;
  override connect(callback?: (error: Error | null) => void): Promise<Client> | undefined {
    if (!callback) {
      return new Promise((resolve, reject) => {
        this.connect((error) => (error ? reject(error) : resolve(this)));
      });
    }
    const { reachMs, connectMs } = this.config;
    let isDone = false;
    const late = (): void => {
      if (!isDone) this.giveUp('connect', new Error('timeout expired'));
    };
    const limits = [
      runningTimeout(() => isConnecting(this.connection) && setImmediate(late), reachMs),
      runningTimeout(() => setImmediate(late), connectMs),
    ];
    super.connect((error: Error | null) => {
      isDone = true;
      limits.forEach(clearInterval);
      callback(error);
    });
    return undefined;
  }

  /** Has the overloads of the package. */
  // oxlint-disable-next-line typescript/no-explicit-any -- its overloads
  override query(...given: any[]): any {
    const { answerMs } = this.config;
    if (answerMs !== undefined) {
      if (!this._getActiveQuery()) this.since = performance.now();
      this.timer ??= setTimeout(() => this.checkAnswer(answerMs), answerMs).unref();
    }
    return (super.query as (...args: unknown[]) => unknown).apply(this, given);
  }

  /** Cancels a statement that is under way. Resolves when Postgres has taken notice. */
  override end(): Promise<void>;
  override end(callback: () => void): void;
  override end(callback?: () => void): Promise<void> | undefined {
    if (this._getActiveQuery()) this.giveUp('statement', new Error('Connection terminated'));
    if (!this.leaving) {
      super.end(() => undefined);
      this.limitClosing();
    }
    const ended = this.leaving ?? this.closed;
    if (!callback) return ended;
    void ended.then(callback);
    return undefined;
  }

  /** One timer for all statements is cheaper than one for each. */
  private checkAnswer(answerMs: number): void {
    const { since } = this;
    if (this.leaving || !this._getActiveQuery()) {
      this.timer = undefined;
      return;
    }
    const leftMs = since + answerMs - performance.now();
    if (leftMs > 0) {
      this.timer = setTimeout(() => this.checkAnswer(answerMs), leftMs).unref();
      return;
    }
    // Node.js runs timers before it reads sockets, and immediates after: the answer may be there.
    setImmediate(() => {
      if (this.since === since && this._getActiveQuery()) {
        this.giveUp('statement', new Error('Query read timeout'));
      } else this.checkAnswer(answerMs);
    });
  }

  private giveUp(what: GivenUp, reason: Error): void {
    if (this.leaving) return;
    closings.set(reason, this.closed);
    // Nothing is left at a server that was not reached.
    if (!isConnecting(this.connection)) this.config.onGivenUp?.(what);
    this.leaving = this.leave();
    // So the package rejects what waits for an answer, and every later statement.
    this.connection.emit('error', reason);
  }

  private async leave(): Promise<void> {
    const stream = this.connection.stream as Socket;
    // Its answers are of no use any more, and no reason for this process to stay.
    stream.removeAllListeners('data').resume().unref();
    this.limitClosing();
    if (isConnecting(this.connection)) {
      stream.destroy();
      return;
    }
    const canceling = this.cancelStatement();
    if (this.config.isPooled) await canceling;
    // It sends FIN and stays half open until Postgres, or the pooler, closes it.
    this.connection.end();
    if (!(await canceling)) stream.destroy();
  }

  /** @returns false if no server is there */
  private async cancelStatement(): Promise<boolean> {
    const { processID, secretKey, ssl, sslNegotiation, host, port } = this;
    // The session has not begun. When it begins, Postgres finds that the connection is closed.
    if (processID === null || secretKey === null) return true;
    const wire = new Connection({ ssl, sslNegotiation } as ConstructorParameters<typeof Connection>[0]);
    return new Promise((resolve) => {
      let isThere = false;
      const limit = setTimeout(() => wire.stream.destroy(), CANCEL_MS);
      wire.on('error', () => undefined);
      wire.once('connect', () => {
        isThere = true;
        if (!ssl) wire.cancel(processID, secretKey);
        else if (sslNegotiation !== 'direct') wire.requestSsl();
      });
      wire.once('sslconnect', () => wire.cancel(processID, secretKey));
      wire.once('end', () => {
        clearTimeout(limit);
        resolve(isThere);
      });
      if (host.startsWith('/')) wire.connect(`${host}/.s.PGSQL.${port}`);
      else wire.connect(port, host);
    });
  }

  private limitClosing(): void {
    const limit = setTimeout(() => this.connection.stream.destroy(), GONE_MS).unref();
    void this.closed.then(() => clearTimeout(limit));
  }
}

const isConnecting = ({ stream }: Connection): boolean => (stream as Socket).connecting;

/** The driver's own timeouts close the socket. The password is not enumerable, so a spread would lose it. */
const withoutTimeouts = (config: ClientConfig): ClientConfig =>
  Object.create(Object.prototype, {
    ...Object.getOwnPropertyDescriptors(config),
    connectionTimeoutMillis: { value: 0, enumerable: true },
    query_timeout: { value: 0, enumerable: true },
  }) as ClientConfig;
