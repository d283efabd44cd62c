import { firstCharacters, ProtocolError } from '@baton/a2a';
import {
  type BulkProgress,
  BulkStore,
  type ClaimedBulk,
  DatabaseUnavailableError,
  isTransient,
} from '@baton/database';
import { Logger } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { RepeatedWork } from '../core/repeated-work.js';
import { SweepLeader } from '../core/sweep-leader.js';
import { MatchingTasks } from './matching-tasks.js';
import { TaskActions } from './task-actions.js';

/** Operations at which a worker works at once, each of another tenant. */
const AT_ONCE = 4;
/** Tasks of an operation that are worked at before others get their turn. */
const PAGE = 20;
/** Tasks that are looked at before others get their turn. */
const SEARCHED = 1_000;
/** Until another worker takes an operation, in ms. */
const LEASE_MS = 30_000;
/** After this time a worker begins with no further task of a page, in ms. */
const PAGE_MS = 10_000;
/** Before an operation continues for which the tenant's quota had no room, in ms. */
const NO_ROOM_MS = 5_000;
/** Failures that an operation names. */
const MAX_FAILURES = 100;
/** Characters of a reason. The row of the operation has all of them, and each page of tasks writes it. */
const MAX_REASON = 500;

/**
 * Works at operations on many tasks: one of a tenant at a time, a page of tasks each, so that tenants take turns. An action on a
 * task has its effect once, however often a worker dies: the page is stored before its tasks are changed, and each action detects
 * its earlier execution.
 */
@Injectable()
export class BulkWork extends RepeatedWork {
  constructor(
    private readonly store: BulkStore,
    private readonly matching: MatchingTasks,
    private readonly actions: TaskActions,
    leader: SweepLeader,
    private readonly logger: Logger,
  ) {
    super({ log: { name: 'The work at many tasks', logger } });
    leader.on('bulkOperations', () => this.wake());
  }

  async runOnce(): Promise<void> {
    while (!this.signal.aborted) {
      const claimed = await this.store.claimDue(AT_ONCE, LEASE_MS);
      if (claimed.length === 0) return;
      await Promise.all(claimed.map((operation) => this.workAt(operation)));
    }
  }

  private async workAt(operation: ClaimedBulk): Promise<void> {
    let progress: BulkProgress = { ...operation, waitsFor: null };
    if (progress.pending.length === 0) {
      progress = await this.findMore(operation, progress);
      const isOver = progress.pending.length === 0 && progress.isListed;
      const isLater = progress.pending.length === 0;
      const state = await this.store.save(operation, progress, { dueInMs: isLater ? 0 : LEASE_MS, isOver });
      if (state !== 'running' || isLater) return;
    }
    progress = await this.page(operation, progress);
    const isOver = progress.pending.length === 0 && progress.isListed;
    const dueInMs = progress.waitsFor === null ? 0 : NO_ROOM_MS;
    await this.store.save(operation, progress, { dueInMs, isOver });
  }

  private async findMore(
    { createdAt, ...operation }: ClaimedBulk,
    progress: BulkProgress,
  ): Promise<BulkProgress> {
    if (progress.isListed) return progress;
    const match = { ...operation, asOf: createdAt };
    const { tasks, next } = await this.matching.find(match, progress.cursor, {
      found: PAGE,
      searched: SEARCHED,
    });
    const pending = tasks.map(({ task }) => task.id);
    const found = progress.found + pending.length;
    return { ...progress, pending, found, cursor: next, isListed: next === null };
  }

  /** One task after the other, until there is no room or no time for the rest. */
  private async page(operation: ClaimedBulk, before: BulkProgress): Promise<BulkProgress> {
    const progress = { ...before, pending: [...before.pending], failures: [...before.failures] };
    const end = performance.now() + PAGE_MS;
    for (const taskId of before.pending) {
      if (performance.now() > end || this.signal.aborted) break;
      try {
        progress[await this.actions.perform(operation, taskId)]++;
      } catch (error) {
        if (error instanceof ProtocolError && error.kind === 'limit-exceeded') {
          return { ...progress, waitsFor: error.message };
        }
        if (isTransient(error) || error instanceof DatabaseUnavailableError) throw error;
        progress.failed++;
        const reason = this.reasonOf(error, operation, taskId);
        if (progress.failures.length < MAX_FAILURES) progress.failures.push({ taskId, reason });
      }
      progress.pending.shift();
    }
    return progress;
  }

  private reasonOf(error: unknown, { tenantId, id }: ClaimedBulk, taskId: string): string {
    if (error instanceof ProtocolError) return firstCharacters(error.message, MAX_REASON);
    this.logger.error('an operation on many tasks failed at a task', {
      err: error,
      tenantId,
      taskId,
      bulkOperation: id,
    });
    return 'an error in Baton: the log of the worker has it';
  }
}
