import type { EnvironmentSource } from '@baton/config';
import { ScheduleStore, TaskStore, TaskTreeStore, TenantRemovalStore } from '@baton/database';
import { type Messaging, MessagingUnavailableError } from '@baton/messaging';
import { TenantLifecycle, TurnEnds } from '@baton/tasks';
import { Logger } from '@baton/telemetry';
import type { Terminal } from './output.js';
import { UNTOLD, withDatabase, withMessaging } from './platform.js';

type Channels = Pick<Messaging, 'publishTask' | 'publishControl' | 'stopTicks'>;

/** Every process reads Postgres again within a second or two. */
const AWAY: Channels = {
  publishTask: async () => undefined,
  publishControl: async () => {
    throw new MessagingUnavailableError('Messaging does not answer');
  },
  stopTicks: async () => undefined,
};

/** The use case of the API, on the database. The workers of the platform refill the slots of stopped runs. */
export async function withTenantLifecycle<T>(
  { source, terminal }: { source: EnvironmentSource; terminal: Terminal },
  work: (lifecycle: TenantLifecycle) => Promise<T>,
): Promise<T> {
  return withDatabase(source, ({ database, tenants, environment }) =>
    withMessaging(environment, async (messaging, answers) => {
      if (!answers) terminal.err(UNTOLD);
      const channels = answers ? messaging : AWAY;
      const logger = Logger.silent();
      const slots = { ended: () => undefined, refill: () => undefined };
      const [tasks, tree] = [new TaskStore(database), new TaskTreeStore(database)];
      const turnEnds = new TurnEnds(tasks, tree, channels, slots, logger);
      const removal = new TenantRemovalStore(database);
      const schedules = new ScheduleStore(database);
      return work(new TenantLifecycle(tenants, removal, schedules, turnEnds, channels, environment, logger));
    }),
  );
}
