import { Environment } from '@baton/config';
import { LimitsService } from '@baton/identity';
import { Logger, Metrics } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { AccessGuard } from '../access/access.guard.js';
import { UnauthenticatedLimit } from '../access/unauthenticated-limit.js';
import { CallHandler } from '../core/call-handler.js';
import { ConnectionLimit } from '../http/connection-limit.js';
import { BodyMemoryPool } from '../http/body-memory-pool.js';
import { Failures } from '../http/failures.js';
import { Traffic } from '../http/requests.js';
import type { GrpcServer } from './grpc-server.js';

/** The gRPC port. Nothing of gRPC is loaded unless GRPC_PORT is set. */
@Injectable()
export class GrpcPort implements OnApplicationShutdown {
  private server: GrpcServer | undefined;

  constructor(
    private readonly environment: Environment,
    private readonly logger: Logger,
    private readonly metrics: Metrics,
    private readonly traffic: Traffic,
    private readonly failures: Failures,
    private readonly limits: LimitsService,
    private readonly bodyMemory: BodyMemoryPool,
    private readonly connections: ConnectionLimit,
    private readonly guard: AccessGuard,
    private readonly unauthenticated: UnauthenticatedLimit,
    private readonly calls: CallHandler,
  ) {}

  /** Listens, and resolves with the port. Undefined without GRPC_PORT. Rejects if the port can't be had. */
  async open(): Promise<number | undefined> {
    const {
      environment,
      logger,
      metrics,
      traffic,
      failures,
      limits,
      bodyMemory,
      connections,
      guard,
      unauthenticated,
      calls,
    } = this;
    if (environment.grpcPort === undefined) return undefined;
    const { GrpcServer } = await import('./grpc-server.js');
    this.server = new GrpcServer({
      environment,
      logger,
      metrics,
      traffic,
      failures,
      limits,
      bodyMemory,
      connections,
      guard,
      unauthenticated,
      calls,
    });
    return this.server.open();
  }

  /** Takes no new calls. Open ones have the grace time to end. */
  drain(): void {
    this.server?.drain(this.environment.apiGraceMs);
  }

  async onApplicationShutdown(): Promise<void> {
    await this.server?.close();
  }
}
