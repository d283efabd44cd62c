import type { Reacher } from '@baton/a2a';
import {
  type AgentTimes,
  type TimedTasks,
  type UsageFilter,
  UsageHoursStore,
  type UsageKey,
  type UsageReport,
} from '@baton/database';
import { Injectable } from '@nestjs/common';
import { seenBy } from './seen-by.js';

/** What tasks have used, and how long they have taken. */
@Injectable()
export class UsageReports {
  constructor(private readonly hours: UsageHoursStore) {}

  /** Usage of the tasks that the caller sees, including deleted ones. */
  async read(
    caller: Reacher & { tenantId: string },
    by: UsageKey,
    filter: Pick<UsageFilter, 'agentId' | 'since' | 'until'>,
  ): Promise<UsageReport> {
    return this.hours.report(by, { ...seenBy(caller), ...filter });
  }

  /** How long the newest ended tasks of these agents have taken. Empty for a caller who sees its own tasks alone: no index finds those. */
  async agentTimes(
    caller: Reacher & { tenantId: string },
    { agentIds, ...time }: Omit<TimedTasks, 'tenantId'>,
  ): Promise<AgentTimes[]> {
    const { tenantId, own, agentIds: seen } = seenBy(caller);
    if (own) return [];
    const asked = seen ? agentIds.filter((id) => seen.includes(id)) : agentIds;
    return this.hours.agentTimes({ tenantId, agentIds: asked, ...time });
  }
}
