import { ProtocolError } from '@baton/a2a';
import { Environment } from '@baton/config';
import {
  type Actor,
  BackupError,
  exportTenant,
  importTenant,
  type KnownWorker,
  type QueueState,
  QueueStore,
  type TenantImport,
  type TenantLoad,
  UsageHoursStore,
  type UsageSums,
  UsageStore,
  WorkerStore,
} from '@baton/database';
import { Messaging } from '@baton/messaging';
import { Injectable } from '@nestjs/common';
import { once } from 'node:events';
import { PassThrough, type Readable } from 'node:stream';
import { LIVE_LEASES } from '../platform/worker-watch.js';
import { TenantSettings } from './tenant-settings.js';

/** The runs of all tenants, and the jobs on the queue. */
export interface PlatformQueue extends QueueState {
  /** Entries of the queue. Null: its server does not answer. */
  jobs: { waiting: number; active: number } | null;
}

/** What operators see and do over all tenants: workers, the queue, exports and imports. */
@Injectable()
export class PlatformService {
  constructor(
    private readonly settings: TenantSettings,
    private readonly workers: WorkerStore,
    private readonly queue: QueueStore,
    private readonly usage: UsageStore,
    private readonly hours: UsageHoursStore,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
  ) {}

  /** Workers that have sent a heartbeat in the last hour. */
  async listWorkers(): Promise<KnownWorker[]> {
    return this.workers.list(this.environment.leaseMs * LIVE_LEASES);
  }

  /** How much work there is and how long it waits, over all tenants. Without contents of tasks. */
  async readQueue(): Promise<PlatformQueue> {
    const [state, jobs] = await Promise.all([
      this.queue.read(this.environment.leaseMs * LIVE_LEASES),
      this.messaging.queueDepth().catch(() => null),
    ]);
    return { ...state, jobs };
  }

  /** What all tenants take at present, by slug, and what they have used in these hours. */
  async readUsage(during: { since: Date; until: Date }): Promise<{ loads: TenantLoad[]; sums: UsageSums[] }> {
    const [loads, sums] = await Promise.all([this.usage.loads(), this.hours.ofTenants(during)]);
    return { loads, sums };
  }

  /** The lines of an export. What fails after the first of them destroys the stream. @throws ProtocolError `conflict` */
  async export(slug: string, options: { skipRunning: boolean }, by: Actor): Promise<Readable> {
    const { id } = await this.settings.beginExport(slug, by);
    const out = new PassThrough();
    const written = exportTenant(this.environment.databaseDirectUrl, id, out, options);
    written.catch((error: unknown) => out.destroy(error as Error));
    out.on('error', () => undefined);
    await Promise.race([once(out, 'readable'), written]).catch(refuse);
    return out;
  }

  /** @throws ProtocolError `invalid-params`, `conflict` */
  async import(slug: string, input: AsyncIterable<Uint8Array>, by: Actor): Promise<TenantImport> {
    this.settings.assertSlug(slug);
    return importTenant(this.environment.databaseDirectUrl, slug, input, by).catch(refuse);
  }
}

function refuse(error: unknown): never {
  throw error instanceof BackupError ? new ProtocolError('conflict', error.message) : error;
}
