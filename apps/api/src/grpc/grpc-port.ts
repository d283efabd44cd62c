import { Environment } from '@baton/config';
import { LimitsService } from '@baton/identity';
import { Logger, Metrics } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { AccessGuard } from '../access/access.guard.js';
import { UnauthenticatedLimit } from '../access/unauthenticated-limit.js';
import { CallHandler } from '../core/call-handler.js';
import { ConnectionLimit } from '../http/connection-limit.js';
import { BodyMemoryPool } from '../http/body-memory-pool.js';
import { UnreadAnswers } from '../http/unread-answers.js';
import { UnstoredBodies } from '../http/unstored-bodies.js';
import { LoopTurns } from '../http/loop-turns.js';
import { Failures } from '../http/failures.js';
import { InFlightRequests } from '../http/in-flight-requests.js';
import type { GrpcServer } from './grpc-server.js';

/** The gRPC port, and what its server shares with HTTP. Nothing of gRPC is loaded unless GRPC_PORT is set. */
@Injectable()
export class GrpcPort implements OnApplicationShutdown {
  private server: GrpcServer | undefined;

  constructor(
    readonly environment: Environment,
    readonly logger: Logger,
    readonly metrics: Metrics,
    readonly inFlight: InFlightRequests,
    readonly failures: Failures,
    readonly limits: LimitsService,
    readonly bodyMemory: BodyMemoryPool,
    readonly unstored: UnstoredBodies,
    readonly turns: LoopTurns,
    readonly connections: ConnectionLimit,
    readonly unread: UnreadAnswers,
    readonly guard: AccessGuard,
    readonly unauthenticated: UnauthenticatedLimit,
    readonly calls: CallHandler,
  ) {}

  /** Listens, and resolves with the port. Undefined without GRPC_PORT. Rejects if the port cannot be bound. */
  async open(): Promise<number | undefined> {
    if (this.environment.grpcPort === undefined) return undefined;
    const { GrpcServer } = await import('./grpc-server.js');
    this.server = new GrpcServer(this);
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
