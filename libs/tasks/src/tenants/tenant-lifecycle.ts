import { ProtocolError } from '@baton/a2a';
import { Environment } from '@baton/config';
import {
  type Actor,
  retryTransient,
  ScheduleStore,
  type Tenant,
  TenantRemovalStore,
  TenantStore,
} from '@baton/database';
import { LimitsService } from '@baton/identity';
import { type ControlMessage, Messaging } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Inject, Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { BatchSize } from '../retention/batch-size.js';
import { TurnEnds } from '../turns/turn-ends.js';

/** Tasks that are canceled at the same time. */
const CANCELS_AT_ONCE = 8;
/** Maximum number of rows of one deletion. A deletion is one short transaction. */
const MAX_ROWS = 2_000;
/** The pause after each deletion, as a multiple of its duration: callers of other tenants come first. */
const REST = 1;
/** How long a request that was accepted in the last moment may take to write. */
const LAST_WRITES_MS = 2_000;

/** A tenant that was suspended. */
export interface Suspended {
  tenant: Tenant;
  /** Tasks whose runs were stopped. */
  canceledTasks: number;
}

/** A tenant that was deleted. */
export interface DeletedTenant {
  id: string;
  slug: string;
  canceledTasks: number;
  /** Rows by table, those of this call. */
  rows: Record<string, number>;
}

/** Suspends, resumes and deletes tenants, for operators. */
@Injectable()
export class TenantLifecycle {
  constructor(
    private readonly tenants: TenantStore,
    private readonly removal: TenantRemovalStore,
    private readonly schedules: ScheduleStore,
    @Inject(TurnEnds) private readonly turnEnds: Pick<TurnEnds, 'cancel'>,
    @Inject(Messaging) private readonly messaging: Pick<Messaging, 'publishControl' | 'stopTicks'>,
    @Inject(LimitsService) private readonly limits: Pick<LimitsService, 'forget'>,
    @Inject(Environment) private readonly environment: Pick<Environment, 'tokenCacheMs'>,
    private readonly logger: Logger,
  ) {}

  /**
   * Refuse all calls of the tenant, and fire none of its schedules. Its running and queued tasks continue, unless they are to
   * be stopped. A suspended tenant gets the new reason.
   * @param reason in the errors of its callers; undefined = "ask the operator"
   * @throws ProtocolError `not-found`, `conflict` if the tenant is being deleted
   */
  async suspend(
    slug: string,
    { reason, stop }: { reason?: string; stop: boolean },
    by: Actor,
  ): Promise<Suspended> {
    const tenant = assertStays(await this.tenants.suspend(slug, reason ?? null, by), slug);
    await this.inform({ type: 'tenant-suspended', tenantId: tenant.id });
    return { tenant, canceledTasks: stop ? await this.cancelTasks(tenant.id) : 0 };
  }

  /** End the suspension. @throws ProtocolError `not-found`, `conflict` if the tenant is being deleted */
  async resume(slug: string, by: Actor): Promise<Tenant> {
    const tenant = assertStays(await this.tenants.resume(slug, by), slug);
    await this.inform({ type: 'limits-changed', tenantId: tenant.id });
    return tenant;
  }

  /**
   * Delete the tenant and everything of it: first its calls are refused and its tasks canceled, then each table is emptied
   * in slices, then the tenant itself goes. If this is interrupted, the tenant stays refused, and another call continues.
   * @param report called after each table with rows, with the rows that were deleted
   * @throws ProtocolError `not-found`
   */
  async delete(
    slug: string,
    report: ((table: string, rows: number) => void) | undefined,
    by: Actor,
  ): Promise<DeletedTenant> {
    const tenant = assertFound(await this.tenants.markDeleting(slug, by), slug);
    const { id } = tenant;
    const since = performance.now();
    const isKnown = await this.inform({ type: 'tenant-suspended', tenantId: id });
    const canceledTasks = await this.cancelTasks(id);
    for (const schedule of await this.schedules.list(id)) await this.stopTicks(schedule.id);
    const rows: Record<string, number> = {};
    const count = (table: string, deleted: number): void => {
      rows[table] = (rows[table] ?? 0) + deleted;
      report?.(table, deleted);
    };
    await this.deleteRows(id, count);
    // Until now a process that was not informed yet may have accepted a call.
    const lastWriteMs = LAST_WRITES_MS + (isKnown ? 0 : this.environment.tokenCacheMs);
    const left = lastWriteMs - (performance.now() - since);
    await delay(Math.max(0, left));
    do {
      await this.cancelTasks(id);
    } while (await this.deleteRows(id, count));
    await retryTransient(() => this.removal.deleteTenant(id));
    await this.inform({ type: 'tenant-suspended', tenantId: id });
    await this.inform({ type: 'catalog-changed', tenantId: id });
    this.logger.info('tenant deleted', { tenantId: id, slug, canceledTasks, rows });
    return { id, slug, canceledTasks, rows };
  }

  /** Cancels the tasks whose runs are not over, until none is left. @returns how many */
  private async cancelTasks(tenantId: string): Promise<number> {
    let canceled = 0;
    for (let found = true; found;) {
      found = false;
      let page = await this.removal.activeTasks(tenantId);
      while (page.length > 0) {
        for (let at = 0; at < page.length; at += CANCELS_AT_ONCE) {
          const slice = page.slice(at, at + CANCELS_AT_ONCE);
          const results = await Promise.all(
            slice.map((taskId) => retryTransient(() => this.turnEnds.cancel(tenantId, null, taskId))),
          );
          const done = results.filter(({ ok }) => ok).length;
          canceled += done;
          found ||= done > 0;
        }
        page = await this.removal.activeTasks(tenantId, page.at(-1));
      }
    }
    return canceled;
  }

  /** Empties all tables of the tenant. @returns whether there was a row */
  private async deleteRows(tenantId: string, count: (table: string, rows: number) => void): Promise<boolean> {
    let any = false;
    for (const table of await this.removal.tables(tenantId)) {
      const deleted = await this.emptyTable(tenantId, table);
      if (deleted > 0) count(table, deleted);
      any ||= deleted > 0;
    }
    return any;
  }

  private async emptyTable(tenantId: string, table: string): Promise<number> {
    const size = new BatchSize(MAX_ROWS);
    let total = 0;
    for (;;) {
      const start = performance.now();
      // Also after a failure: the next try then takes fewer rows.
      const deleted = await retryTransient(() => {
        const tried = performance.now();
        return this.removal
          .deleteSlice(tenantId, table, size.current)
          .finally(() => size.adaptTo(performance.now() - tried));
      });
      if (deleted === 0) return total;
      total += deleted;
      await delay((performance.now() - start) * REST);
    }
  }

  /** @returns whether the message is out; every process learns of it within TOKEN_CACHE_MS in any case */
  private async inform(message: ControlMessage & { tenantId: string }): Promise<boolean> {
    this.limits.forget(message.tenantId);
    try {
      await this.messaging.publishControl(message);
      return true;
    } catch (err) {
      this.logger.warn('could not inform other processes of a changed tenant', { err });
      return false;
    }
  }

  private async stopTicks(scheduleId: string): Promise<void> {
    try {
      await this.messaging.stopTicks(scheduleId);
    } catch (err) {
      this.logger.warn('queue is away; the ticks of a deleted schedule stay on it', { err, scheduleId });
    }
  }
}

function assertFound(tenant: Tenant | undefined, slug: string): Tenant {
  if (tenant) return tenant;
  throw new ProtocolError('not-found', `There is no tenant "${slug.slice(0, 100)}"`);
}

function assertStays(found: Tenant | undefined, slug: string): Tenant {
  const tenant = assertFound(found, slug);
  if (!tenant.deletingAt) return tenant;
  throw new ProtocolError('conflict', `The tenant "${slug}" is being deleted: delete it again to continue`);
}
