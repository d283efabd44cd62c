import { PlatformReadiness } from '@baton/tasks';
import { Injectable } from '@nestjs/common';
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
