import { ProtocolError, type ReadMemory } from '@baton/a2a';
import { Environment } from '@baton/config';
import { Injectable } from '@nestjs/common';
import type { AnswerChannel } from './requests.js';

/** Reads up to this size are counted but never wait. */
const SMALL_BYTES = 1024 * 1024;
/** Maximum number of waiting calls of one tenant. */
const MAX_WAITING = 64;
/** How long a call waits, in ms. */
const MAX_WAIT_MS = 10_000;
/** `Retry-After` of a refused call. */
const RETRY_AFTER_SECONDS = 5;

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

  constructor({ taskReadBytes, taskReadTotalBytes }: Environment) {
    this.free = taskReadTotalBytes;
    this.maxOfTenant = Math.max(taskReadBytes, taskReadTotalBytes / 2);
  }

  /**
   * A call keeps its memory until `response` is closed or `release` is called.
   * @param isStrict the call fails with `unavailable` if it gets no memory; otherwise it answers with what it has
   */
  leaseFor(tenantId: string, response: AnswerChannel, isStrict: boolean): ReadLease {
    return new ReadLease(this, { tenantId, response, isStrict });
  }

  /**
   * Resolves with true when the bytes are granted; with false if that takes too long, too many wait, or `over` is
   * aborted.
   */
  async take(tenantId: string, wanted: number, over: AbortSignal): Promise<boolean> {
    const bytes = Math.min(wanted, this.maxOfTenant);
    const tenant = this.tenants.get(tenantId) ?? { held: 0, waiting: [] };
    this.tenants.set(tenantId, tenant);
    if (bytes <= SMALL_BYTES) {
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

/** The memory of one call. */
export class ReadLease implements ReadMemory {
  private isOver = false;
  /** Ends the wait of a call that waits for memory. Most calls never do. */
  private waiting: AbortController | undefined;
  private readonly taken: number[] = [];

  constructor(
    private readonly pool: ReadMemoryPool,
    private readonly call: { tenantId: string; response: AnswerChannel; isStrict: boolean },
  ) {
    call.response.once('close', this.release);
  }

  /** Throws `unavailable` if the call is strict and gets none. */
  async take(bytes: number): Promise<boolean> {
    const { tenantId, isStrict } = this.call;
    if (this.isOver) return true;
    if (this.taken.length > 0) this.pool.takeMore(tenantId, bytes);
    else if (!(await this.pool.take(tenantId, bytes, (this.waiting ??= new AbortController()).signal))) {
      if (isStrict && !this.hasEnded()) throw busy();
      return false;
    }
    this.taken.push(bytes);
    // It was closed while the memory was granted.
    if (this.hasEnded()) this.pool.give(tenantId, this.taken.splice(0));
    return true;
  }

  /** A method, because the compiler takes a field for unchanged after an `await`. */
  private hasEnded(): boolean {
    return this.isOver;
  }

  /** The answer is sent, or the caller has disconnected. Later reads of the call are small. */
  readonly release = (): void => {
    if (this.isOver) return;
    this.isOver = true;
    this.waiting?.abort(ANSWERED);
    this.pool.give(this.call.tenantId, this.taken.splice(0));
  };
}

// One for all: an abort without a reason makes a DOMException with a stack.
const ANSWERED = new Error('the call has ended');

const busy = (): ProtocolError =>
  new ProtocolError(
    'unavailable',
    'Too many large tasks are being read at the moment: send the request again, or read the task page by page with GET /v1/requests/{id}/artifacts',
    { metadata: { retryAfterSeconds: String(RETRY_AFTER_SECONDS) }, retryAfterSeconds: RETRY_AFTER_SECONDS },
  );
