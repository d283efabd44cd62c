import { Role } from '@baton/a2a';
import type { Schedule } from '@baton/database';

/** A schedule of every minute; change what a test is about. */
export const scheduleOf = (overrides: Partial<Schedule> = {}): Schedule => ({
  ...{ tenantId: 'tenant', id: 'schedule', owner: null, name: 'report', agent: 'echo', version: 1 },
  message: {
    ...{ messageId: '', contextId: '', taskId: '', role: Role.ROLE_USER, parts: [], metadata: undefined },
    ...{ extensions: [], referenceTaskIds: [] },
  },
  ...{ cron: '* * * * *', at: null, timeZone: 'UTC', startsAt: null, endsAt: null },
  ...{ overlap: 'skip', missed: 'fire-once', context: 'new', maxCount: null, paused: false },
  ...{ fired: 0, nextAt: null, isWaiting: false, pendingAt: null, last: null },
  ...{ lastTaskId: null, lastTaskState: null, createdAt: new Date(0), updatedAt: new Date(0) },
  ...overrides,
});
