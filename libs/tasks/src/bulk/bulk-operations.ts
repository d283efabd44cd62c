import { isUuid, ProtocolError, type Reacher, requireScope } from '@baton/a2a';
import {
  type Actor,
  type BulkAction,
  type BulkCursor,
  type BulkFilter,
  type BulkOperation,
  BulkStore,
  MAX_RUNNING,
  type PageAfter,
  type StoredTask,
} from '@baton/database';
import { clock } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { ACTION_RULES } from './bulk-actions.js';
import { type MatchedTasks, MatchingTasks } from './matching-tasks.js';

/** Tasks that a preview reads: a person waits for it. */
const MAX_SEARCHED = 10_000;
/** Tasks that it shows as examples. */
const MAX_SHOWN = 20;
/** Tasks that are read before their contents are dropped. */
const SLICE = 500;
/** `Retry-After` of a refused operation. Most end within minutes. */
const RETRY_SECONDS = 30;

type TenantCaller = Reacher & { tenantId: string };

/** What an operation would do. */
export interface BulkPreview {
  /** Number of tasks. */
  found: number;
  /** The newest of them. */
  tasks: StoredTask[];
  /** Whether all tasks were looked at. If not, there may be more. */
  isWhole: boolean;
}

/** Operations on many tasks, for those who begin and watch them. `BulkWork` does them. */
@Injectable()
export class BulkOperations {
  constructor(
    private readonly store: BulkStore,
    private readonly matching: MatchingTasks,
  ) {}

  /**
   * What an operation would do now, without doing it.
   * @throws ProtocolError `forbidden`, `invalid-params`
   */
  async preview(caller: TenantCaller, action: BulkAction, filter: BulkFilter): Promise<BulkPreview> {
    assertMay(caller, action, filter);
    const match = { tenantId: caller.tenantId, action, filter, caller, asOf: clock.date() };
    const shown: StoredTask[] = [];
    let [found, searched] = [0, 0];
    let cursor: BulkCursor | null = null;
    // Few are held at a time: a failed task may have a long message.
    do {
      const part: MatchedTasks = await this.matching.find(match, cursor, { found: SLICE, searched: SLICE });
      found += part.tasks.length;
      searched += part.searched;
      shown.push(...part.tasks.slice(0, MAX_SHOWN - shown.length));
      cursor = part.next;
    } while (cursor && searched < MAX_SEARCHED);
    return { found, tasks: shown, isWhole: cursor === null };
  }

  /**
   * Begin an operation on the tasks that are there now and match. It has the rights that the caller has now.
   * @throws ProtocolError `forbidden`, `invalid-params`, `limit-exceeded` if too many of the tenant are under way
   */
  async begin(
    caller: TenantCaller,
    action: BulkAction,
    filter: BulkFilter,
    by: Actor,
  ): Promise<BulkOperation> {
    assertMay(caller, action, filter);
    const { tenantId, principal, scopes, agents } = caller;
    const begun = await this.store.create({
      tenantId,
      action,
      filter,
      caller: { principal, scopes, ...(agents && { agents }) },
      actor: by,
    });
    if (begun) return begun;
    throw ProtocolError.limitExceeded(
      'bulkOperations',
      MAX_RUNNING,
      RETRY_SECONDS,
      'wait until one has ended, or cancel one',
    );
  }

  /** All of the tenant, the newest first. Show a caller those that it sees (`isSeenBy`). */
  async list(caller: TenantCaller, page: PageAfter): Promise<BulkOperation[]> {
    if (page.after !== undefined && !isUuid(page.after)) {
      throw ProtocolError.invalidParams('cursor', 'must be the next_cursor of an earlier page');
    }
    return this.store.list(caller.tenantId, page);
  }

  /** @throws ProtocolError `not-found` */
  async find(caller: TenantCaller, id: string): Promise<BulkOperation> {
    const found = isUuid(id) ? await this.store.find(caller.tenantId, id) : undefined;
    return found && isSeenBy(caller, found) ? found : missing(id);
  }

  /**
   * No further task is changed, once the worker has finished the tasks at which it works: at most 20.
   * @throws ProtocolError `not-found`, `conflict` if it has ended
   */
  async cancel(caller: TenantCaller, id: string, by: Actor): Promise<BulkOperation> {
    const { tenantId } = await this.find(caller, id);
    const canceled = await this.store.cancel(tenantId, id, by);
    if (canceled) return canceled;
    throw new ProtocolError('conflict', 'The operation has ended');
  }
}

/** Whether a caller sees an operation: its own, or all of its tenant if it may read all agents. */
export const isSeenBy = ({ principal, scopes, agents }: Reacher, { caller }: BulkOperation): boolean =>
  caller.principal.key === principal.key || (scopes.includes('admin') && !agents);

function assertMay({ scopes }: Reacher, action: BulkAction, { state, parked }: BulkFilter): void {
  const { scopes: enough, states } = ACTION_RULES[action];
  requireScope(enough, scopes);
  if (state !== undefined && !states.includes(state)) {
    throw ProtocolError.invalidParams('filter.state', `has no tasks that the action "${action}" is for`);
  }
  if (action === 'resume' && parked === false) {
    throw ProtocolError.invalidParams('filter.parked', 'only parked tasks can be resumed');
  }
}

const missing = (id: string): never => {
  throw new ProtocolError('not-found', `Operation not found: ${isUuid(id) ? id : 'name it by its id'}`);
};
