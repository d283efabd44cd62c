import {
  type Actor,
  AUDIT_ACTIONS,
  type AuditQuery,
  auditJson,
  type AuditRecord,
  AuditStore,
  PLATFORM,
} from '@baton/database';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';

const KNOWN: ReadonlySet<string> = new Set(
  Object.keys(AUDIT_ACTIONS).flatMap((action) => [action, action.slice(0, action.indexOf('.'))]),
);

const MINUTE_MS = 60_000;
/** Records of refusals of one caller that a process writes a minute. */
const MAX_OF_CALLER = 5;
/** Records of refusals a minute in the log of one tenant or of the platform: a flood of many callers fills it no faster. */
const MAX_OF_LOG = 60;
/** Callers that are counted at the same time. Of a larger flood, the oldest are forgotten. */
const MAX_CALLERS = 10_000;
/** Logs that are counted at the same time. */
const MAX_LOGS = 1_000;

/** A request that was refused. */
export interface Refusal {
  action: 'signin.refused' | 'access.refused';
  /** Unset: the caller is of no tenant. */
  tenantId?: string;
  by: Actor;
  /** Method and path as the route declares it. */
  route: string;
  reason: string;
}

/** The audit log for callers of the API. */
@Injectable()
export class AuditLog {
  /** Refusals of each caller in this minute. */
  private readonly refusals = new LRUCache<string, number>({
    maxSize: MAX_CALLERS,
    sizeCalculation: () => 1,
    ttl: MINUTE_MS,
  });
  /** By tenant: what was written this minute, and what was left out since the last record. */
  private readonly logs = new LRUCache<string, { written: number; left: number }>({ max: MAX_LOGS });
  private minute = 0;

  constructor(
    private readonly store: AuditStore,
    private readonly logger: Logger,
  ) {}

  /** Whether there is such an action, or the first word of one. */
  static knows(action: string): boolean {
    return KNOWN.has(action);
  }

  /**
   * At most `limit` records, the latest first.
   * @param tenantId undefined = of all tenants and of the platform
   * @returns `last`: the position of the next page, if there is one
   */
  async page(
    tenantId: string | undefined,
    query: Omit<AuditQuery, 'tenantId'>,
  ): Promise<{ records: ReturnType<typeof auditJson>[]; last: AuditRecord | undefined }> {
    const { limit } = query;
    const found = await this.store.list({
      ...query,
      limit: limit + 1,
      ...(tenantId !== undefined && { tenantId }),
    });
    const page = found.slice(0, limit);
    return { records: page.map(auditJson), last: found.length > limit ? page.at(-1) : undefined };
  }

  /**
   * Record a refused request, without waiting for it. Callers cannot fill a log: a process writes few of these records a minute, and the
   * next record has the number of those left out. A token is one caller, wherever it is sent from. Each tenant's log has room
   * of its own, so strangers do not keep out what matters to a tenant.
   */
  refuse({ action, tenantId = PLATFORM, by, route, reason }: Refusal): void {
    const log = this.logOf(tenantId);
    if (!this.hasRoom(log, `${tenantId} ${by.kind === 'unknown' ? (by.address ?? '') : by.key}`)) {
      log.left += 1;
      return;
    }
    const leftOut = log.left;
    log.left = 0;
    const detail = { reason, ...(leftOut > 0 && { leftOut }) };
    this.store
      .write(tenantId, { action, target: { kind: 'route', name: route }, by, outcome: 'refused', detail })
      .catch((err: unknown) =>
        this.logger.warn('a refused request could not be recorded in the audit log', { err }),
      );
  }

  private logOf(tenantId: string): { written: number; left: number } {
    const minute = Math.floor(performance.now() / MINUTE_MS);
    if (minute !== this.minute) {
      this.minute = minute;
      this.refusals.clear();
      for (const log of this.logs.values()) log.written = 0;
    }
    const log = this.logs.get(tenantId) ?? { written: 0, left: 0 };
    this.logs.set(tenantId, log);
    return log;
  }

  private hasRoom(log: { written: number }, caller: string): boolean {
    const own = (this.refusals.get(caller) ?? 0) + 1;
    if (own > MAX_OF_CALLER || log.written >= MAX_OF_LOG) return false;
    this.refusals.set(caller, own);
    log.written += 1;
    return true;
  }
}
