import { GRPC_METHODS } from '@baton/a2a';
import { within } from '@baton/telemetry';
import {
  type Metadata,
  Server,
  ServerCredentials,
  ServerInterceptingCall,
  type ServerInterceptor,
  type ServerOptions,
  type ServerUnaryCall,
} from '@grpc/grpc-js';
import { once } from 'node:events';
import { type AddressInfo, createServer, type Server as Listener, type Socket } from 'node:net';
import type { Connection } from '../http/connection.js';
import { inNetworks } from '../http/networks.js';
import { type GrpcExchange, GrpcHandler, type SharedServices } from './grpc-handler.js';
import { encodingOf, limitMessages, onReceivedBytes } from './message-limit.js';
import { PublicCalls } from './public-calls.js';
import { addService, methodOf } from './grpc-services.js';
import { GrpcSessions } from './grpc-sessions.js';
import { GrpcReflection } from './grpc-reflection.js';
import { GrpcHealth } from './grpc-health.js';

/** After this time the server asks whether the peer of a silent connection is there. */
const PING_MS = 30_000;
/** A peer on a slow network answers within some seconds. Without an answer the connection counts as dead. */
const PING_TIMEOUT_MS = 10_000;
/** A connection without a call is closed after this time. */
const IDLE_MS = 300_000;
/** Clients connect again after this time, so that load spreads over new processes. Open calls have the grace time to end. */
const MAX_AGE_MS = 3_600_000;
/** A stream that lasts longer than this ends, and its caller resumes it. */
const MAX_AGE_GRACE_MS = 600_000;

/** A connection that holds more than this gets no new calls. */
const SESSION_MEGABYTES = 32;

/** What a compressed message may unpack to. A few kilobytes can stand for megabytes, so this much memory counts from the beginning. */
const MAX_UNPACKED_BYTES = 1_048_576;

/** How long the last answers of a shutdown may take to reach their callers. */
const FLUSH_MS = 500;

const SERVICES: readonly string[] = [...new Set(GRPC_METHODS.map(({ service }) => service))];

/** The gRPC port of an API process. */
export class GrpcServer {
  private readonly handler: GrpcHandler;
  private readonly publicCalls: PublicCalls;
  private readonly isProxy: (address: string) => boolean;
  private readonly health = new GrpcHealth(SERVICES);
  private readonly server: Server;
  private readonly secure: boolean;
  private readonly listener: Listener;
  private readonly sockets = new Set<Socket>();
  /** By the address and port of the peer, the only data of a call's connection that grpc-js has. */
  private readonly connections = new Map<string, Connection>();
  private readonly sessions: GrpcSessions;
  /** The calls that were admitted, until their message is there. */
  private readonly admitted = new WeakMap<Metadata, GrpcExchange>();
  private readonly injector: ReturnType<Server['createConnectionInjector']>;

  constructor(private readonly shared: SharedServices) {
    const { environment, logger } = shared;
    this.handler = new GrpcHandler(shared);
    this.publicCalls = new PublicCalls(shared.unauthenticated, environment, logger);
    this.isProxy = inNetworks(environment.trustedProxies);
    this.server = new Server(this.options());
    this.addServices();
    const credentials = credentialsOf(environment);
    this.secure = credentials !== undefined;
    this.injector = this.server.createConnectionInjector(credentials ?? ServerCredentials.createInsecure());
    this.sessions = new GrpcSessions(this.server, {
      connectionOf: ({ socket }) => this.connections.get(peerOf(socket)),
      all: () => this.connections.values(),
      maxCalls: environment.grpcStreamsPerConnection,
      logger,
      metrics: shared.metrics,
    });
    // grpc-js has no limit of connections of its own.
    this.listener = createServer((socket) => this.take(socket));
  }

  /** Listens, and resolves with the port. Rejects if the port cannot be bound. */
  async open(): Promise<number> {
    const { host, grpcPort } = this.shared.environment;
    this.listener.listen(grpcPort, host);
    await once(this.listener, 'listening');
    const { port } = this.listener.address() as AddressInfo;
    this.shared.logger.info('gRPC port is open', { port, tls: this.secure });
    return port;
  }

  /** Takes no new connections, and asks clients to open no new calls on theirs. */
  drain(graceMs: number): void {
    this.health.drain();
    this.listener.close();
    this.injector.drain(graceMs);
  }

  /** Ends the remaining calls, after the last answers have reached their callers. */
  async close(): Promise<void> {
    this.injector.destroy();
    // A connection that was asked to close does so when its answers are out.
    const closed = [...this.sockets].map((socket) => once(socket, 'close'));
    await within(Promise.allSettled(closed), FLUSH_MS);
    this.server.forceShutdown();
    for (const socket of this.sockets) socket.destroy();
  }

  private take(socket: Socket): void {
    const connection = this.shared.connections.open(socket);
    if (!connection) {
      socket.destroy();
      return;
    }
    const peer = peerOf(socket);
    this.shared.unread.watch(socket);
    this.sockets.add(socket);
    this.connections.set(peer, connection);
    socket.once('close', () => {
      this.sockets.delete(socket);
      this.connections.delete(peer);
    });
    this.injector.injectConnection(socket);
  }

  private options(): ServerOptions {
    const { bodyLimitBytes, grpcStreamsPerConnection } = this.shared.environment;
    return {
      interceptors: [this.intercept],
      'grpc.max_receive_message_length': bodyLimitBytes,
      'grpc.max_concurrent_streams': grpcStreamsPerConnection,
      'grpc.keepalive_time_ms': PING_MS,
      'grpc.keepalive_timeout_ms': PING_TIMEOUT_MS,
      'grpc.max_connection_idle_ms': IDLE_MS,
      'grpc.max_connection_age_ms': MAX_AGE_MS,
      'grpc.max_connection_age_grace_ms': MAX_AGE_GRACE_MS,
      'grpc.enable_channelz': 0,
      // In MB: headers and unread answers of one connection. Without it a connection may hold any number.
      'grpc-node.max_session_memory': SESSION_MEGABYTES,
    };
  }

  private addServices(): void {
    for (const service of SERVICES) {
      const rpcs = GRPC_METHODS.filter((rpc) => rpc.service === service).map((rpc) => {
        const method = methodOf(service, rpc.rpc);
        // Unary and streaming alike: the answer goes the way of the exchange.
        const handle = ({ metadata, request }: ServerUnaryCall<Buffer, Buffer>): void => {
          const exchange = this.admitted.get(metadata);
          if (exchange) void this.handler.handle(rpc, method, exchange, request);
        };
        return [rpc.rpc, handle] as const;
      });
      addService(this.server, service, Object.fromEntries(rpcs));
    }
    this.health.register(this.server);
    new GrpcReflection(SERVICES).register(this.server);
  }

  /** Checks the caller before the message is read. Health and reflection need no token. */
  private readonly intercept: ServerInterceptor = ({ path }, call) => {
    const connection = this.connections.get(peerOf(call.getConnectionInfo()));
    if (connection) onReceivedBytes(call, (bytes) => this.sessions.received(connection, bytes));
    const origin = {
      path,
      authority: call.getHost(),
      peer: this.addressOf(call),
      isProxy: this.isProxy,
      secure: this.secure,
    };
    if (!SERVICES.includes(path.split('/')[1] ?? '')) return this.publicCalls.intercept(origin, call);
    let exchange: GrpcExchange | undefined;
    const intercepted = new ServerInterceptingCall(call, {
      start: (next) =>
        next({
          onReceiveMetadata: (metadata, admit) => {
            const begun = this.handler.begin(origin, metadata, intercepted);
            exchange = begun;
            if (connection)
              begun.reply.onUnread = (change) => this.shared.unread.note(connection.socket, change);
            this.admitted.set(metadata, begun);
            const onAdmitted = (isAdmitted: boolean): void => {
              if (!isAdmitted) return;
              const reserved = encodingOf(call) === 'identity' ? 0 : MAX_UNPACKED_BYTES;
              if (reserved > 0)
                limitMessages(call, Math.min(reserved, this.shared.environment.bodyLimitBytes));
              onReceivedBytes(call, this.handler.countBytes(begun, reserved));
              if (!begun.reply.raw.writableFinished) admit(metadata);
            };
            void this.handler.admit(begun).then(onAdmitted);
          },
          onReceiveHalfClose: (next) => {
            void this.handler.waitForTurn(exchange).then(() => {
              exchange?.received();
              next();
            });
          },
          onCancel: () => exchange?.reply.close(),
        }),
    });
    return intercepted;
  };

  private addressOf(call: Parameters<ServerInterceptor>[1]): string {
    return call.getConnectionInfo().remoteAddress ?? '';
  }
}

const peerOf = ({
  remoteAddress,
  remotePort,
}: Partial<Pick<Socket, 'remoteAddress' | 'remotePort'>>): string =>
  `${String(remoteAddress)} ${String(remotePort)}`;

/** TLS, if there is a certificate. */
function credentialsOf({
  grpcTlsCert,
  grpcTlsKey,
}: SharedServices['environment']): ServerCredentials | undefined {
  if (grpcTlsCert === undefined || grpcTlsKey === undefined) return undefined;
  const pair = { cert_chain: Buffer.from(grpcTlsCert), private_key: Buffer.from(grpcTlsKey) };
  return ServerCredentials.createSsl(null, [pair]);
}
