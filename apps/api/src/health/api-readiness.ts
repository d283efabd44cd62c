import { PlatformReadiness } from '@baton/tasks';
import { Injectable } from '@nestjs/common';
import type { FastifyReply } from 'fastify';
import { InFlightRequests } from '../http/in-flight-requests.js';

/** The answer of `/readyz` on the management port. */
interface Readiness {
  ready: boolean;
  checks: Record<string, string>;
  warnings: string[];
}

/** Whether this process can serve callers. */
@Injectable()
export class ApiReadiness {
  constructor(
    private readonly platform: PlatformReadiness,
    private readonly inFlight: InFlightRequests,
  ) {}

  async report(): Promise<Readiness> {
    const { ready, checks, warnings } = await this.platform.report();
    const { draining } = this.inFlight;
    const server = draining ? 'shutting down' : 'ok';
    return { ready: ready && !draining, checks: { ...checks, server }, warnings };
  }
}

/** Answers with 200, or with 503 and `Retry-After`. */
export async function sendReadiness(reply: FastifyReply, ready: boolean, body: object): Promise<void> {
  if (!ready) reply.header('retry-after', '2');
  await reply
    .status(ready ? 200 : 503)
    .header('cache-control', 'no-store')
    .send(body);
}
