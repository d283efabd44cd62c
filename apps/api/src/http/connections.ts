import {
  type IncomingMessage,
  type RequestListener,
  type Server,
  STATUS_CODES,
  type ServerResponse,
} from 'node:http';
import type { Socket } from 'node:net';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';
import { CallTurns } from './call-turns.js';
import { errorText } from './errors.js';

/** Maximum number of requests that wait on one connection for the answers before theirs. */
const MAX_WAITING = 64;
/** Maximum number of headers of a request. Browsers and proxies send about 40. */
const MAX_HEADERS = 100;
/** How long a connection stays open after an error, so that the caller can read it. */
const LINGER_MS = 2_000;
/** Errors by the parser's code. Any other code is a malformed request. */
const REFUSALS: Record<string, [status: number, message: string]> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request took too long to arrive: send it again, in one go'],
  HPE_HEADER_OVERFLOW: [
    431,
    `the headers are larger than 16 KiB, or more than ${String(MAX_HEADERS)}: send fewer or shorter ones`,
  ],
};
const MALFORMED: [number, string] = [400, 'this is not a well-formed HTTP/1.1 request'];
const TOO_MANY_HEADERS = [
  431,
  `the request has more than ${String(MAX_HEADERS)} headers: send fewer`,
] as const;
const UNKNOWN_EXPECTATION = [417, 'the Expect header can only be 100-continue'] as const;
const JSON_TYPE = { 'content-type': 'application/json; charset=utf-8' };

/** The value with which Node lets its parser leave the rest of a packet: so it does for an upgrade. */
const LEAVE_REST = 2;

/** What Node calls for the headers of each request. It is not in the types, and is the same from Node 20 to 24. */
interface SocketOfServer extends Socket {
  readonly parser: { onIncoming: (this: unknown, request: IncomingMessage, keepAlive: boolean) => number };
}

/** The state of one connection. */
interface ConnectionState {
  current: ServerResponse | undefined;
  waiting: number;
  refused: boolean;
}

/**
 * Keeps the order of pipelined requests, and answers bytes that are not HTTP. Node would start all requests of a
 * connection at once and keep their answers in memory, and a waiting request would not notice that its caller has
 * disconnected. Here a request starts when the previous answer is sent, and few start in one turn of the event loop.
 */
export class Connections {
  private readonly connections = new WeakMap<Socket, ConnectionState>();
  private readonly turns = new CallTurns<Socket>();

  /** @param headers those of every answer */
  constructor(private readonly headers: Readonly<Record<string, string>>) {}

  install(instance: FastifyInstance): void {
    instance.addHook('onRequest', (request, reply, done) => this.inTurn(request, reply, done));
    instance.server.on('checkExpectation', (request: IncomingMessage, response: ServerResponse) =>
      this.refuseRequest(request, response, UNKNOWN_EXPECTATION),
    );
    this.filterRequests(instance.server);
  }

  /**
   * Keeps requests from the router. Those of closed connections are dropped. Those with too many headers are refused: a thousand short
   * ones have room in 16 KiB, and to read them takes longer than all else.
   */
  private filterRequests(server: Server): void {
    server.on('connection', (socket: SocketOfServer) => this.stopParsing(socket));
    // Reading `headers` makes Node build an object of all header lines that it kept.
    server.maxHeadersCount = MAX_HEADERS + 1;
    const answers = server.listeners('request') as RequestListener[];
    server.removeAllListeners('request');
    server.on('request', (request, response) => {
      if (this.isClosed(request.socket)) return;
      if (request.rawHeaders.length > 2 * MAX_HEADERS) {
        this.stateOf(request.socket).refused = true;
        this.refuseRequest(request, response, TOO_MANY_HEADERS);
      } else for (const answer of answers) answer(request, response);
    });
  }

  /**
   * Stops the parser of a closed connection. A packet may bring two thousand requests. Node would parse all of them, even if the first one
   * closes the connection, and make an error with its stack for each: that keeps the event loop busy for a tenth of a second.
   */
  private stopParsing(socket: SocketOfServer): void {
    const { parser } = socket;
    const { onIncoming } = parser;
    parser.onIncoming = (request, keepAlive) => {
      const next = onIncoming.call(parser, request, keepAlive);
      return this.isClosed(socket) ? LEAVE_REST : next;
    };
  }

  private isClosed(socket: Socket): boolean {
    return socket.destroyed || this.connections.get(socket)?.refused === true;
  }

  /** Answers in the place of Node or the router, and then closes the connection. */
  private refuseRequest(
    { socket }: IncomingMessage,
    response: ServerResponse,
    [status, message]: readonly [number, string],
  ): void {
    this.stateOf(socket).current = response;
    response.writeHead(status, { ...this.headers, ...JSON_TYPE, connection: 'close' });
    response.end(errorText(status, message));
  }

  /** Answers input that the parser refuses with 400, 408 or 431, after the pending answers. */
  readonly refuse = (error: NodeJS.ErrnoException, socket: Socket): void => {
    if (error.code === 'ECONNRESET' || socket.destroyed) return;
    const connection = this.stateOf(socket);
    if (connection.refused) return;
    connection.refused = true;
    endInTurn(connection, socket, refusalText(error.code, this.headers), error.code);
  };

  private inTurn({ raw }: FastifyRequest, reply: FastifyReply, done: () => void): void {
    const connection = this.stateOf(raw.socket);
    const begin = (): void => {
      connection.current = reply.raw;
      const leave = this.turns.take(raw.socket, () => {
        // A caller that has left meanwhile gets no answer.
        if (!raw.socket.destroyed) done();
      });
      if (leave) raw.once('close', leave);
    };
    if (reply.raw.socket) {
      begin();
      return;
    }
    connection.waiting += 1;
    if (connection.waiting > MAX_WAITING) {
      raw.socket.destroy();
      return;
    }
    reply.raw.once('socket', () => {
      connection.waiting -= 1;
      begin();
    });
  }

  private stateOf(socket: Socket): ConnectionState {
    let connection = this.connections.get(socket);
    if (!connection) {
      connection = { current: undefined, waiting: 0, refused: false };
      this.connections.set(socket, connection);
    }
    return connection;
  }
}

/** Ends the connection with `refusal` when the answers before the broken request are out. */
function endInTurn(
  connection: ConnectionState,
  socket: Socket,
  refusal: string,
  code: string | undefined,
): void {
  const { current } = connection;
  if (!current || current.writableFinished) end(socket, refusal);
  else if (code === 'ERR_HTTP_REQUEST_TIMEOUT' || !current.req.complete) {
    // The request that is answered now is the broken one.
    if (current.headersSent) socket.destroy();
    else end(socket, refusal);
  } else {
    current.once('finish', () => endInTurn(connection, socket, refusal, code));
  }
}

/** Sends the error and closes later: closing at once would reset the connection before the caller reads the answer. */
function end(socket: Socket, refusal: string): void {
  if (!socket.writable) {
    socket.destroy();
    return;
  }
  socket.end(refusal);
  setTimeout(() => socket.destroy(), LINGER_MS).unref();
}

/** The whole HTTP answer to bytes that are not a request. */
function refusalText(code = '', headers: Readonly<Record<string, string>>): string {
  const [status, message] = REFUSALS[code] ?? MALFORMED;
  const body = errorText(status, message);
  const lines = Object.entries({ ...headers, ...JSON_TYPE }).map(([name, value]) => `${name}: ${value}`);
  return [
    `HTTP/1.1 ${String(status)} ${STATUS_CODES[status] ?? ''}`,
    ...lines,
    `content-length: ${String(Buffer.byteLength(body))}`,
    'connection: close',
    '',
    body,
  ].join('\r\n');
}
