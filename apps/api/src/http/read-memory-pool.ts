import { Environment } from '@baton/config';
import { callerOf } from '@baton/identity';
import { Injectable } from '@nestjs/common';
import { holderOf } from './holder-of.js';
import { LoopTurns } from './loop-turns.js';
import { ReadLease, SMALL_READ_BYTES } from './read-lease.js';
import type { Exchange } from './requests.js';

/** Maximum number of waiting calls of one tenant: a program may ask for a hundred pages at once, and each has its turn soon. */
const MAX_WAITING = 512;
/** How long a call waits, in ms. */
const MAX_WAIT_MS = 10_000;

interface Waiter {
  bytes: number;
  /** Called once with whether the memory was granted. */
  answer: (isGranted: boolean) => void;
}

/** A tenant's share of the memory, and its waiting calls. */
interface TenantReads {
  held: number;
  readonly waiting: Waiter[];
}

/**
 * The memory of this process for reads of large tasks, `TASK_READ_TOTAL_BYTES`, counted as JSON. A read without free
 * memory waits. Tenants take turns, and none has more than half. Small tasks, which come with their rows, take none.
 */
@Injectable()
export class ReadMemoryPool {
  private free: number;
  private readonly maxOfTenant: number;
  private readonly tenants = new Map<string, TenantReads>();

  constructor(
    { taskReadBytes, taskReadTotalBytes }: Environment,
    private readonly turns: LoopTurns,
  ) {
    this.free = taskReadTotalBytes;
    this.maxOfTenant = Math.max(taskReadBytes, taskReadTotalBytes / 2);
  }

  /**
   * The memory of one call. It keeps its memory until the reply is closed or `release` is called.
   * @param access a call that reads fails with `unavailable` if it gets no memory; others answer with what they have
   */
  leaseFor({ request, reply }: Exchange, access: 'read' | 'write'): ReadLease {
    const { tenantId } = callerOf(request);
    const holder = holderOf(request);
    const turn = (bytes: number): Promise<void> => this.turns.take(holder, bytes);
    return new ReadLease(this, { tenantId, turn, response: reply.raw, isStrict: access === 'read' });
  }

  /**
   * Resolves with true when the bytes are granted; with false if that takes too long, too many wait, or `over` is
   * aborted.
   */
  async take(tenantId: string, wanted: number, over: AbortSignal): Promise<boolean> {
    const bytes = Math.min(wanted, this.maxOfTenant);
    const tenant = this.tenants.get(tenantId) ?? { held: 0, waiting: [] };
    this.tenants.set(tenantId, tenant);
    if (bytes <= SMALL_READ_BYTES) {
      this.hold(tenant, bytes);
      return true;
    }
    if (over.aborted || tenant.waiting.length >= MAX_WAITING) return false;
    return new Promise((resolve) => {
      const end = (): void => {
        const index = tenant.waiting.indexOf(waiter);
        if (index >= 0) waiter.answer(false);
        if (index >= 0) tenant.waiting.splice(index, 1);
        // Later calls may need less.
        this.serve();
      };
      const timer = setTimeout(end, MAX_WAIT_MS).unref();
      over.addEventListener('abort', end, { once: true });
      const waiter: Waiter = {
        bytes,
        answer: (isGranted) => {
          clearTimeout(timer);
          over.removeEventListener('abort', end);
          resolve(isGranted);
        },
      };
      tenant.waiting.push(waiter);
      this.serve();
    });
  }

  /**
   * Take the bytes at once. For a call that already holds memory: it must not wait, because others wait for its memory.
   */
  takeMore(tenantId: string, wanted: number): void {
    const tenant = this.tenants.get(tenantId);
    if (tenant) this.hold(tenant, Math.min(wanted, this.maxOfTenant));
  }

  /** @param taken the sizes of all grants, in bytes */
  give(tenantId: string, taken: readonly number[]): void {
    const tenant = this.tenants.get(tenantId);
    if (!tenant) return;
    for (const bytes of taken) this.hold(tenant, -Math.min(bytes, this.maxOfTenant));
    this.serve();
    if (tenant.held === 0 && tenant.waiting.length === 0) this.tenants.delete(tenantId);
  }

  private hold(tenant: TenantReads, bytes: number): void {
    tenant.held += bytes;
    this.free -= bytes;
  }

  private serve(): void {
    while (this.serveNext());
  }

  /** The tenant that was served longest ago is first. A smaller request does not overtake it. */
  private serveNext(): boolean {
    for (const [id, tenant] of this.tenants) {
      const [next] = tenant.waiting;
      if (!next || (tenant.held > 0 && tenant.held + next.bytes > this.maxOfTenant)) continue;
      if (next.bytes > this.free) return false;
      tenant.waiting.shift();
      this.hold(tenant, next.bytes);
      this.tenants.delete(id);
      this.tenants.set(id, tenant);
      next.answer(true);
      return true;
    }
    return false;
  }
}
