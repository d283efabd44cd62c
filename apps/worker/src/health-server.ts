import { Environment, isManagementHost, ownUrl } from '@baton/config';
import { PlatformReadiness } from '@baton/tasks';
import { Logger, Metrics } from '@baton/telemetry';
import { Injectable, type OnApplicationBootstrap, type OnApplicationShutdown } from '@nestjs/common';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';

const OTHER_HOST =
  '{"error":"this port does not answer for the name in Host: use its address, or add the name to MANAGEMENT_HOSTS"}';
/** Connections to it: probes and Prometheus need few. */
const MAX_CONNECTIONS = 64;
/** A connection without a request for this long is closed: probes send theirs at once. */
const SILENT_MS = 10_000;

/** `/healthz`, `/readyz` and `/metrics` of a worker, when `WORKER_PORT` is set. */
@Injectable()
export class HealthServer implements OnApplicationBootstrap, OnApplicationShutdown {
  private server: Server | undefined;
  /** Where it answers. Unset: nowhere. */
  url: string | undefined;

  constructor(
    private readonly readiness: PlatformReadiness,
    private readonly metrics: Metrics,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  async onApplicationBootstrap(): Promise<void> {
    const { workerPort, host } = this.environment;
    if (workerPort === undefined) return;
    const server = createServer(
      { connectionsCheckingInterval: SILENT_MS / 4 },
      (request, response) => void this.answer(request, response),
    );
    server.maxConnections = MAX_CONNECTIONS;
    server.headersTimeout = SILENT_MS;
    this.server = server;
    await new Promise<void>((resolve, reject) => {
      server.once('error', reject);
      server.listen(workerPort, host, resolve);
    });
    const { port } = server.address() as AddressInfo;
    this.url = ownUrl(host, port);
    this.logger.info('health port is open', { workerPort: port });
  }

  onApplicationShutdown(): void {
    this.server?.close();
    this.server?.closeAllConnections();
  }

  private async answer({ url = '/', headers }: IncomingMessage, response: ServerResponse): Promise<void> {
    if (!isManagementHost(headers.host, this.environment.managementHosts)) {
      return void send(response, 421, 'application/json', OTHER_HOST);
    }
    const path = url.split('?')[0];
    if (path === '/healthz') return void send(response, 200, 'application/json', '{"status":"ok"}');
    if (path === '/readyz') return this.answerReady(response);
    if (path === '/metrics') {
      const { contentType, body } = await this.metrics.render(headers.accept);
      return void send(response, 200, contentType, body);
    }
    send(response, 404, 'application/json', '{"error":"not found"}');
  }

  private async answerReady(response: ServerResponse): Promise<void> {
    const report = await this.readiness.report();
    send(response, report.ready ? 200 : 503, 'application/json', JSON.stringify(report));
  }
}

function send(response: ServerResponse, status: number, type: string, body: string): void {
  response.writeHead(status, { 'content-type': type }).end(body);
}
