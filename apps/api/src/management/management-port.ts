import { Environment } from '@baton/config';
import { Logger } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { RouteConfig, RouteConstraints } from '@nestjs/platform-fastify';
import type { FastifyInstance } from 'fastify';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';

const MANAGEMENT = 'management';
const IMPORT_MS = 3_600_000;

/** Requests that came in on the management port. */
const requests = new WeakSet<IncomingMessage>();

/** Whether a request came in on the management port. */
export const isManagement = (request: IncomingMessage): boolean => requests.has(request);

type Strategy = Parameters<FastifyInstance['addConstraintStrategy']>[0];
type RouteHandler = Parameters<ReturnType<Strategy['storage']>['set']>[1];

/**
 * The listener as a constraint of Fastify's router. A request on the management port matches only routes that are declared
 * for it, and a request on the public port never matches one of these, however its path is spelled.
 */
export const LISTENER_CONSTRAINT: Strategy = {
  name: 'listener',
  storage: () => {
    const handlers = new Map<unknown, RouteHandler>();
    return {
      get: (listener) => handlers.get(listener) ?? null,
      set: (listener, handler) => void handlers.set(listener, handler),
    };
  },
  deriveConstraint: (request) => (isManagement(request) ? MANAGEMENT : undefined),
  mustMatchWhenDerived: true,
};

/** Moves every route of a controller to the management port. Guards and error filters are those of all routes. */
export const OnManagementPort = (): ClassDecorator => (controller) => {
  const members = Object.values(Object.getOwnPropertyDescriptors(controller.prototype as object));
  for (const { value } of members) {
    if (typeof value !== 'function' || value === controller) continue;
    RouteConstraints({ listener: MANAGEMENT })(value as () => unknown);
    RouteConfig({ cors: false })(value as () => unknown);
  }
};

/** A second listener of the same application, for operators and their tools. Open only if MANAGEMENT_PORT is set. */
@Injectable()
export class ManagementPort implements OnApplicationShutdown {
  private server: Server | undefined;

  constructor(
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  /** Listens, and resolves with the URL. Undefined without a port. Rejects if the port can't be had. */
  async open(fastify: FastifyInstance): Promise<string | undefined> {
    const { managementPort, managementHost } = this.environment;
    if (managementPort === undefined) return undefined;
    const server = createServer((request, response) => {
      requests.add(request);
      fastify.routing(request, response);
    });
    // The import of a tenant is one long request.
    server.requestTimeout = IMPORT_MS;
    // As on the public port: a kept connection is never closed under a request.
    server.keepAliveTimeout = fastify.server.keepAliveTimeout;
    this.server = server;
    server.listen(managementPort, managementHost);
    await once(server, 'listening');
    const { port } = server.address() as AddressInfo;
    const host = managementHost.includes(':') ? `[${managementHost}]` : managementHost;
    const url = `http://${host}:${String(port)}`;
    this.logger.info('management port is open', { url });
    return url;
  }

  /** It stays open while the public port drains, so that the last metrics can be read. */
  onApplicationShutdown(): void {
    this.server?.close();
    this.server?.closeAllConnections();
  }
}
