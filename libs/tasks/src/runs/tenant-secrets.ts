import { SecretReader } from '@baton/agents';
import { Secrets } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import { retryTransient } from './retry-transient.js';

/** How long a run waits for Postgres to give it a secret. */
const READ_MS = 60_000;

/** The secrets of tenants, for runs: an outage of Postgres must not fail a task that needs one. */
@Injectable()
export class TenantSecrets extends SecretReader {
  constructor(private readonly secrets: Secrets) {
    super();
  }

  override get(tenantId: string, name: string): Promise<string | undefined> {
    return retryTransient(() => this.secrets.get(tenantId, name), AbortSignal.timeout(READ_MS));
  }
}
