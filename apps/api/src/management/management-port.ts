import { Environment } from '@baton/config';
import { Logger } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { RouteConfig, RouteConstraints } from '@nestjs/platform-fastify';
import { once } from 'node:events';
import type { Server } from 'node:http';
import type { AddressInfo } from 'node:net';

/** The listener of routes at the management port (`LISTENER_CONSTRAINT`). */
export const MANAGEMENT = 'management';
/** The import of a tenant is one request, and may take an hour. */
const IMPORT_MS = 3_600_000;

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

  /** Lets the server listen, and resolves with the URL. Undefined without a port. Rejects if the port cannot be bound. */
  async open(server: Server): Promise<string | undefined> {
    const { managementPort, managementHost, keepAliveSeconds } = this.environment;
    if (managementPort === undefined) return undefined;
    // The import of a tenant is one long request.
    server.requestTimeout = IMPORT_MS;
    server.keepAliveTimeout = keepAliveSeconds * 1000;
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
