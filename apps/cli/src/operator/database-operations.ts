import { BUILTIN_AGENTS } from '@baton/agents';
import {
  DeadLetterStore,
  DeadPushStore,
  OPERATOR_ACTOR,
  QueueStore,
  RunStore,
  TaskStore,
  WorkerStore,
} from '@baton/database';
import type { RunJob } from '@baton/messaging';
import { Outbound } from '@baton/outbound';
import {
  BoundHosts,
  type DeadLetter,
  DeadLetters,
  type DeadPush,
  DeadPushes,
  LIVE_LEASES,
  OperatorLetters,
  type OfTenant,
  TrustedIssuers,
  TurnIntake,
} from '@baton/tasks';
import type { Cli } from '../cli.js';
import { withDatabase } from '../platform.js';
import { NOTHING_IN_USE, tenantSettings, withChannels } from './channels.js';
import type { PlatformOperations } from './platform-operations.js';

const LETTERS_A_PAGE = 1_000;

/** The use cases of the API, on the database. */
export async function withDatabaseOperations<T>(
  { source, terminal }: Pick<Cli, 'source' | 'terminal'>,
  work: (operations: PlatformOperations) => Promise<T>,
): Promise<T> {
  return withDatabase(source, (platform) => {
    const { database, agents, hosts, issuers, environment } = platform;
    return withChannels(terminal, environment, async (channels) => {
      const settings = tenantSettings(platform, channels);
      const directory = {
        find: async (tenantId: string, name: string) =>
          BUILTIN_AGENTS.find(({ id, slug }) => id === name || slug === name) ?? agents.find(tenantId, name),
      };
      // The limits of tenants do not apply to the operator.
      const slots = {
        quotaFor: async () => undefined,
        enqueue: async (run: RunJob, dispatched: boolean) => {
          if (dispatched) await channels.enqueueRuns([run]);
        },
      };
      const boundHosts = new BoundHosts(settings, hosts, directory, channels);
      const letters = new DeadLetterStore(database);
      const intake = new TurnIntake(new TaskStore(database), slots, environment);
      const operatorLetters = new OperatorLetters(
        ...([settings, letters, new RunStore(database)] as const),
        new DeadLetters(letters, directory, intake),
      );
      const deadPushes = new DeadPushes(new DeadPushStore(database), settings, channels);
      const outbound = new Outbound(environment);
      const trustedIssuers = new TrustedIssuers(settings, issuers, channels, outbound, NOTHING_IN_USE);
      const operations: PlatformOperations = {
        listHosts: (tenant) => boundHosts.list(tenant),
        bindHost: (host, target) => boundHosts.bind(host, target, OPERATOR_ACTOR),
        unbindHost: (host) => boundHosts.unbind(host, OPERATOR_ACTOR),
        listIssuers: (tenant) => trustedIssuers.list(tenant),
        addIssuer: (tenant, issuer) => trustedIssuers.add(tenant, issuer, OPERATOR_ACTOR),
        removeIssuer: (tenant, id) => trustedIssuers.remove(tenant, id, OPERATOR_ACTOR),
        listLetters: async (tenant) => {
          const all: OfTenant<DeadLetter>[] = [];
          for (let isMore = true; isMore;) {
            const page = await operatorLetters.list(tenant, { limit: LETTERS_A_PAGE, after: all.at(-1) });
            all.push(...page);
            isMore = page.length === LETTERS_A_PAGE;
          }
          return all;
        },
        showLetter: (runId) => operatorLetters.show(runId),
        redeliver: (runId, again) => operatorLetters.redeliver(runId, again, OPERATOR_ACTOR),
        listPushes: async (tenant) => {
          const all: OfTenant<DeadPush>[] = [];
          for (let isMore = true; isMore;) {
            const page = await deadPushes.listOf(tenant, { limit: LETTERS_A_PAGE, after: all.at(-1) });
            all.push(...page);
            isMore = page.length === LETTERS_A_PAGE;
          }
          return all;
        },
        redeliverPushes: (taskId, configId) => deadPushes.redeliverAnywhere(taskId, configId, OPERATOR_ACTOR),
        listWorkers: () => new WorkerStore(database).list(environment.leaseMs * LIVE_LEASES),
        readQueue: () => new QueueStore(database).read(environment.leaseMs * LIVE_LEASES),
      };
      try {
        return await work(operations);
      } finally {
        await outbound.onApplicationShutdown();
      }
    });
  });
}
