import {
  AuditStore,
  exportTenant,
  OPERATOR_ACTOR,
  importTenant,
  ScheduleStore,
  TaskStore,
  TaskTreeStore,
  TenantRemovalStore,
  UsageStore,
} from '@baton/database';
import { type Messaging, MessagingUnavailableError } from '@baton/messaging';
import { TenantLifecycle, TenantSettings, TurnEnds } from '@baton/tasks';
import { Logger } from '@baton/telemetry';
import type { Cli } from '../cli.js';
import { UNTOLD, withDatabase, withMessaging } from '../platform.js';
import type { TenantOperations } from './tenant-operations.js';

/** A command serves no requests, so it knows nothing that could be stale. */
const NOTHING_IN_USE = { forget: () => undefined };

type Channels = Pick<Messaging, 'publishTask' | 'publishControl' | 'stopTicks'>;

/** Every process reads Postgres again within a second or two. */
const AWAY: Channels = {
  publishTask: async () => undefined,
  publishControl: async () => {
    throw new MessagingUnavailableError('Messaging does not answer');
  },
  stopTicks: async () => undefined,
};

/** The use cases of the API, on the database. The workers of the platform refill the slots of stopped runs. */
export async function withDatabaseTenants<T>(
  { source, terminal }: Pick<Cli, 'source' | 'terminal'>,
  work: (tenants: TenantOperations) => Promise<T>,
): Promise<T> {
  return withDatabase(source, ({ database, tenants, agents, environment }) => {
    let isTold = true;
    // Only commands that change something need messaging, which takes a while to connect.
    const use = <R>(change: (channels: Channels) => Promise<R>): Promise<R> =>
      withMessaging(environment, async (messaging, answers) => {
        isTold &&= answers;
        return change(answers ? messaging : AWAY);
      }).finally(() => {
        if (!isTold) terminal.err(UNTOLD);
      });
    const settings = (channels: Channels = AWAY): TenantSettings =>
      new TenantSettings(
        tenants,
        agents,
        new UsageStore(database),
        new AuditStore(database),
        channels,
        NOTHING_IN_USE,
        environment,
      );
    const lifecycle = (channels: Channels): TenantLifecycle => {
      const logger = Logger.silent();
      const slots = { ended: () => undefined, refill: () => undefined };
      const [tasks, tree] = [new TaskStore(database), new TaskTreeStore(database)];
      const turnEnds = new TurnEnds(tasks, tree, channels, slots, logger);
      const [removal, schedules] = [new TenantRemovalStore(database), new ScheduleStore(database)];
      return new TenantLifecycle(
        ...([tenants, removal, schedules, turnEnds, channels, NOTHING_IN_USE, environment, logger] as const),
      );
    };
    return work({
      create: (slug) => settings().create(slug, OPERATOR_ACTOR),
      list: () => settings().list(),
      change: (slug, change) => settings().change(slug, change, OPERATOR_ACTOR),
      limits: (slug) => settings().limits(slug),
      changeLimits: (...change) =>
        use((channels) => settings(channels).changeLimits(...change, OPERATOR_ACTOR)),
      usage: (slug) => settings().usage(slug),
      suspend: (...of) => use((channels) => lifecycle(channels).suspend(...of, OPERATOR_ACTOR)),
      resume: (slug) => use((channels) => lifecycle(channels).resume(slug, OPERATOR_ACTOR)),
      delete: (...of) => use((channels) => lifecycle(channels).delete(...of, OPERATOR_ACTOR)),
      export: async (slug, out, options) =>
        exportTenant(
          environment.databaseUrl,
          (await settings().beginExport(slug, OPERATOR_ACTOR)).id,
          out,
          options,
        ),
      import: (slug, input) => {
        settings().assertSlug(slug);
        return importTenant(environment.databaseUrl, slug, input, OPERATOR_ACTOR);
      },
    });
  });
}
