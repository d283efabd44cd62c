import { PlatformReadiness, type ReadinessReport } from '@baton/tasks';
import { Injectable } from '@nestjs/common';
import { Traffic } from '../http/traffic.js';

/** Whether this process can serve callers now, and if not, what is in the way. */
@Injectable()
export class Readiness {
  constructor(
    private readonly platform: PlatformReadiness,
    private readonly traffic: Traffic,
  ) {}

  report(): Promise<ReadinessReport> {
    return this.platform.report({ server: () => this.assertServing() });
  }

  private assertServing(): Promise<void> {
    return this.traffic.draining ? Promise.reject(new Error('shutting down')) : Promise.resolve();
  }
}
