import {
  exportTenant,
  OPERATOR_ACTOR,
  importTenant,
  ScheduleStore,
  TaskStore,
  TaskTreeStore,
  TenantRemovalStore,
} from '@baton/database';
import { TenantLifecycle, TurnEnds } from '@baton/tasks';
import { Logger } from '@baton/telemetry';
import type { Cli } from '../cli.js';
import { withDatabase } from '../platform.js';
import { NOTHING_IN_USE, tenantSettings, withChannels } from './channels.js';
import type { TenantOperations } from './tenant-operations.js';

/** The use cases of the API, on the database. The workers of the platform refill the slots of stopped runs. */
export async function withDatabaseTenants<T>(
  { source, terminal }: Pick<Cli, 'source' | 'terminal'>,
  work: (tenants: TenantOperations) => Promise<T>,
): Promise<T> {
  return withDatabase(source, (platform) => {
    const { database, tenants, environment } = platform;
    return withChannels(terminal, environment, (channels) => {
      const settings = tenantSettings(platform, channels);
      const logger = Logger.silent();
      const slots = { ended: () => undefined, refill: () => undefined };
      const [tasks, tree] = [new TaskStore(database), new TaskTreeStore(database)];
      const turnEnds = new TurnEnds(tasks, tree, channels, slots, logger);
      const lifecycle = new TenantLifecycle(
        ...([tenants, new TenantRemovalStore(database), new ScheduleStore(database), turnEnds] as const),
        ...([channels, NOTHING_IN_USE, environment, logger] as const),
      );
      return work({
        create: (slug) => settings.create(slug, OPERATOR_ACTOR),
        list: () => settings.list(),
        find: (slug) => settings.find(slug),
        change: (slug, change) => settings.change(slug, change, OPERATOR_ACTOR),
        limits: (slug) => settings.limits(slug),
        changeLimits: (...change) => settings.changeLimits(...change, OPERATOR_ACTOR),
        usage: (slug) => settings.usage(slug),
        suspend: (...of) => lifecycle.suspend(...of, OPERATOR_ACTOR),
        resume: (slug) => lifecycle.resume(slug, OPERATOR_ACTOR),
        delete: (...of) => lifecycle.delete(...of, OPERATOR_ACTOR),
        export: async (slug, out, options) =>
          exportTenant(
            environment.databaseDirectUrl,
            (await settings.beginExport(slug, OPERATOR_ACTOR)).id,
            out,
            options,
          ),
        import: async (slug, input) => {
          settings.assertSlug(slug);
          return importTenant(environment.databaseDirectUrl, slug, input, OPERATOR_ACTOR);
        },
      });
    });
  });
}
