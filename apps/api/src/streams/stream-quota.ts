import { type CallContext, ProtocolError } from '@baton/a2a';
import { guestLimits } from '@baton/config';
import { StreamCountStore } from '@baton/database';
import { LimitsService } from '@baton/identity';
import { Messaging, type Unsubscribe } from '@baton/messaging';
import { SingleFlight } from '@baton/postgres';
import { Logger } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { randomUUID } from 'node:crypto';

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

interface Claim {
  max: number;
  resolve: (granted: boolean) => void;
  reject: (error: unknown) => void;
}

interface Listener {
  /** No stream is open, and the row is empty. */
  over(): void;
  /** The row could not be written; the heartbeat tries again. */
  failed(error: unknown): void;
}

/**
 * The streams of one tenant in one process. The row is always written whole and by one statement at a time, so it
 * cannot differ from the open streams for long. Claims that arrive meanwhile are written together.
 */
class TenantStreams {
  private open = 0;
  /** The value of the row; 0 is no row. */
  private noted = 0;
  /** Whether a row is needed: only if the tenant has, or had, a limit. */
  private listed = false;
  private claims: Claim[] = [];
  private writing = false;

  constructor(
    private readonly tenantId: string,
    private readonly processId: string,
    private readonly counts: StreamCountStore,
    private readonly listener: Listener,
  ) {}

  get isListed(): boolean {
    return this.listed;
  }

  /** Counts one more stream without a limit. */
  add(): void {
    this.open += 1;
    this.write();
  }

  /** Counts one more stream if all processes together stay within `max`. Resolves with whether it was granted. */
  claim(max: number): Promise<boolean> {
    this.listed = true;
    return new Promise((resolve, reject) => {
      this.claims.push({ max, resolve, reject });
      this.write();
    });
  }

  /** One of them has ended. */
  remove(): void {
    this.open -= 1;
    this.write();
  }

  /** From now on the streams are noted in the database. */
  list(): void {
    this.listed = true;
    this.write();
  }

  /** @param noted the number in the row; a wrong number is corrected */
  reconcile(noted: number): void {
    if (this.writing) return;
    this.noted = noted;
    this.write();
  }

  private write(): void {
    if (!this.writing) void this.writeAll();
  }

  private async writeAll(): Promise<void> {
    this.writing = true;
    while (this.claims.length > 0 || (this.listed && this.noted !== this.open)) {
      if (!(await this.writeOnce())) break;
    }
    this.writing = false;
    if (this.open === 0 && this.noted === 0 && this.claims.length === 0) {
      this.listed = false;
      this.listener.over();
    }
  }

  /** @returns whether to continue */
  private async writeOnce(): Promise<boolean> {
    const held = this.open;
    // Guests may open fewer. A batch has one maximum.
    const max = this.claims[0]?.max;
    const claims = this.claims.filter((claim) => claim.max === max);
    this.claims = this.claims.filter((claim) => claim.max !== max);
    try {
      const granted = await this.ask(held, claims);
      this.open += granted;
      this.noted = held + granted;
      claims.forEach(({ resolve }, i) => resolve(i < granted));
      return true;
    } catch (error) {
      for (const { reject } of claims) reject(error);
      if (claims.length === 0) this.listener.failed(error);
      return claims.length > 0;
    }
  }

  private async ask(held: number, claims: readonly Claim[]): Promise<number> {
    const { tenantId, processId } = this;
    const last = claims.at(-1);
    if (last) {
      return this.counts.claim({ tenantId, processId, held, wanted: claims.length, max: last.max });
    }
    await this.counts.report(tenantId, processId, held);
    return 0;
  }
}
