import { ProtocolError } from '@baton/a2a';
import { StreamCountStore } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Messaging, type Unsubscribe } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { randomUUID } from 'node:crypto';
import { TenantStreams } from './tenant-streams.js';

/** A process that was killed gives its slots back when it has been silent for 15 s: four of these fit in. */
const HEARTBEAT_MS = 3_500;
/** Nobody knows when a stream ends; a caller that asks again every second costs little. */
const RETRY_SECONDS = 1;

/**
 * The streams that each tenant has open in this process, and the slots they take among all processes. Where a
 * tenant has no limit that is a number in memory; otherwise every process writes its own number into a row and
 * opens a stream only if the sum leaves room. The rows are mended by each heartbeat.
 */
@Injectable()
export class StreamQuota implements OnModuleInit, OnApplicationShutdown {
  private readonly processId = randomUUID();
  private readonly tenants = new Map<string, TenantStreams>();
  private heartbeat: NodeJS.Timeout | undefined;
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
    this.heartbeat = setInterval(() => void this.beat(), HEARTBEAT_MS).unref();
  }

  onApplicationShutdown(): void {
    clearInterval(this.heartbeat);
    this.stopControl?.();
  }

  /**
   * Do `work`, which streams, in a slot of the tenant's. The slot is free again as soon as `caller` is aborted.
   * Throws `limit-exceeded` if there is none, before anything is done.
   */
  async during(tenantId: string, caller: AbortSignal, work: () => Promise<void>): Promise<void> {
    const leave = await this.enter(tenantId);
    caller.addEventListener('abort', leave, { once: true });
    try {
      await work();
    } finally {
      leave();
    }
  }

  /** @returns gives the slot back; more calls than one do nothing */
  private async enter(tenantId: string): Promise<() => void> {
    const { openStreams } = await this.limits.of(tenantId);
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
          this.logger.warn('open streams not counted; trying again', { err: error, tenantId }),
      });
      this.tenants.set(tenantId, streams);
    }
    return streams;
  }

  private async beat(): Promise<void> {
    try {
      for (const [tenantId, streams] of this.tenants) {
        if (!streams.isListed && (await this.limits.of(tenantId)).openStreams !== null) streams.list();
      }
      const listed = [...this.tenants].filter(([, { isListed }]) => isListed);
      if (listed.length === 0) return;
      const noted = await this.counts.touch(this.processId);
      for (const [tenantId, streams] of listed) streams.mend(noted.get(tenantId) ?? 0);
    } catch (error) {
      this.logger.warn('heartbeat of open streams failed', { err: error });
    }
  }
}
