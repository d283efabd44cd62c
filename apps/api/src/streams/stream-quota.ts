import { type CallContext, ProtocolError } from '@baton/a2a';
import { guestLimits } from '@baton/config';
import { StreamCountStore } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Messaging, type Unsubscribe } from '@baton/messaging';
import { SingleFlight } from '@baton/postgres';
import { Logger } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { TenantStreams } from './tenant-streams.js';

/** The slots of a process are free after 15 s without a heartbeat, which is four heartbeats. */
const HEARTBEAT_MS = 3_500;
/** `Retry-After` of a refused stream. It is unknown when another stream ends. */
const RETRY_SECONDS = 1;

/**
 * Enforces `openStreams` of each tenant, over all processes. For a tenant with a limit every process writes the number
 * of its own streams into a row, and opens another only if the sum of the rows allows it; each heartbeat corrects the
 * rows. For a tenant without a limit the number is only kept in memory.
 */
@Injectable()
export class StreamQuota implements OnModuleInit, OnApplicationShutdown {
  private readonly processId = randomUUID();
  private readonly tenants = new Map<string, TenantStreams>();
  private heartbeat: NodeJS.Timeout | undefined;
  private readonly beating = new SingleFlight<void>();
  private stopControl: Unsubscribe | undefined;

  constructor(
    private readonly counts: StreamCountStore,
    private readonly limits: LimitsService,
    private readonly messaging: Messaging,
    private readonly logger: Logger,
  ) {}

  async onModuleInit(): Promise<void> {
    this.stopControl = await this.messaging.subscribeControl((message) => {
      // Streams that were opened while there was no limit count as soon as there is one.
      if (message.type === 'limits-changed') this.tenants.get(message.tenantId)?.list();
    });
    this.heartbeat = setInterval(() => {
      this.beating
        .run(() => this.beat())
        .catch((error: unknown) => this.logger.warn('heartbeat of open streams failed', { err: error }));
    }, HEARTBEAT_MS).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.heartbeat);
    this.stopControl?.();
  }

  /**
   * Does `work` in a slot of the tenant. The slot is free again when `caller` is aborted. Throws `limit-exceeded` if no
   * slot is free, before any work is done.
   */
  async during(
    context: Pick<CallContext, 'tenantId' | 'principal'>,
    caller: AbortSignal,
    work: () => Promise<void>,
  ): Promise<void> {
    const leave = await this.enter(context);
    caller.addEventListener('abort', leave, { once: true });
    try {
      await work();
    } finally {
      leave();
    }
  }

  /** @returns a function that frees the slot; further calls do nothing */
  private async enter({
    tenantId,
    principal,
  }: Pick<CallContext, 'tenantId' | 'principal'>): Promise<() => void> {
    const limits = await this.limits.get(tenantId);
    const { openStreams } = principal.kind === 'guest' ? guestLimits(limits) : limits;
    const streams = this.streamsOf(tenantId);
    if (openStreams === null) streams.add();
    else if (!(await streams.claim(openStreams))) {
      throw ProtocolError.limitExceeded(
        'openStreams',
        openStreams,
        RETRY_SECONDS,
        'close a stream that is open, or ask the operator for more',
      );
    }
    let left = false;
    return () => {
      if (!left) streams.remove();
      left = true;
    };
  }

  private streamsOf(tenantId: string): TenantStreams {
    let streams = this.tenants.get(tenantId);
    if (!streams) {
      streams = new TenantStreams(tenantId, this.processId, this.counts, {
        over: () => this.tenants.delete(tenantId),
        failed: (error) =>
          this.logger.warn('open streams could not be counted; trying again', { err: error, tenantId }),
      });
      this.tenants.set(tenantId, streams);
    }
    return streams;
  }

  private async beat(): Promise<void> {
    for (const [tenantId, streams] of this.tenants) {
      if (!streams.isListed && (await this.limits.get(tenantId)).openStreams !== null) streams.list();
    }
    const listed = [...this.tenants].filter(([, { isListed }]) => isListed);
    if (listed.length === 0) return;
    const noted = await this.counts.touch(this.processId);
    for (const [tenantId, streams] of listed) streams.reconcile(noted.get(tenantId) ?? 0);
  }
}
