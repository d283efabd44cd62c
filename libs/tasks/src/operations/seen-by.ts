import { type Reacher, visibleTasks } from '@baton/a2a';
import type { TaskFilter } from '@baton/database';

/** The filter of the tasks that a caller sees. */
export const seenBy = (
  caller: Reacher & { tenantId: string },
): Pick<TaskFilter, 'tenantId' | 'own' | 'agentIds'> => ({
  tenantId: caller.tenantId,
  own: visibleTasks(caller),
  agentIds: caller.agents?.ids,
});
