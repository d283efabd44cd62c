import { SecretReader } from '@baton/agents';
import { retryTransient } from '@baton/database';
import { Secrets } from '@baton/identity';
import { Injectable } from '@nestjs/common';

/** How long a run waits for Postgres to give it a secret. */
const READ_SECRET_MS = 60_000;

/** The secrets of tenants, for runs. An outage of Postgres does not fail a task that needs one. */
@Injectable()
export class TenantSecretReader extends SecretReader {
  constructor(private readonly secrets: Secrets) {
    super();
  }

  override get(tenantId: string, name: string, destinations: readonly string[]): Promise<string | undefined> {
    return retryTransient(() => this.secrets.get(tenantId, name, destinations), {
      signal: AbortSignal.timeout(READ_SECRET_MS),
    });
  }
}
