import {
  type ActiveRunCounts,
  type InstallationState,
  InstallationStore,
  releaseOf,
  RunStore,
  ScheduleStore,
  type StoredBytes,
  UsageStore,
} from '@baton/database';
import { Messaging } from '@baton/messaging';
import { SingleFlight } from '@baton/postgres';
import { gauge, Metrics } from '@baton/telemetry';
import { Injectable, type OnModuleInit } from '@nestjs/common';
import { PlatformReadiness } from './platform-readiness.js';

const QUEUE_DEPTH = gauge('baton_queue_depth', 'Runs on the queue by state', ['state']);
const RUNS = gauge('baton_runs', 'Runs in Postgres that have not ended, by state', ['state']);
const OLDEST_RUN = gauge(
  'baton_oldest_run_seconds',
  'Time since the oldest run of each state was accepted; 0 if there is none',
  ['state'],
);
const TENANT_RUNS = gauge(
  'baton_tenant_runs',
  'Runs in Postgres that have not ended, by state, of the 20 tenants that have the most',
  ['tenant', 'state'],
);
const TENANT_BYTES = gauge(
  'baton_tenant_stored_bytes',
  'Bytes that a tenant keeps in Postgres, of the 20 tenants that keep most',
  ['tenant'],
);
const SCHEDULES_OVERDUE = gauge(
  'baton_schedules_overdue_seconds',
  'For how long the longest overdue schedule of all tenants has been so; 0 if none is',
);
const DATABASE_BYTES = gauge(
  'baton_database_bytes',
  'Size of the database on the disk of Postgres, in bytes',
);
const BACKUP_AGE = gauge(
  'baton_backup_age_seconds',
  'Time since the last `baton backup` of this database; 0 if there was none',
);
const PAUSED_SCHEDULES = gauge(
  'baton_schedules_paused',
  'Schedules of all tenants that Baton has paused, because it cannot compute their next time',
);
const SLEEP_OVERDUE = gauge(
  'baton_sleep_overdue_seconds',
  'For how long the most overdue sleep, or question with a time, of all tenants should be over; 0 if none is overdue',
);
const PARKED = gauge(
  'baton_runs_parked',
  'Runs of all tenants whose steps do not fit the code of their agent: they wait for other code',
);
const ENDED_NEXT = gauge(
  'baton_agents_next_ended',
  'Agents of all tenants whose version with the label "next" has lost its share because its runs failed',
);
const REDIS_EVICTS = gauge(
  'baton_redis_evicts',
  '1 if the maxmemory-policy of Redis lets it delete the queue; else 0',
);
const READY = gauge(
  'baton_ready',
  '1 if Postgres, its migrations and the queue answer to this process, as on /readyz; else 0',
);
const INFO = gauge('baton_info', 'Always 1: the release of this process', ['version']);

/** Tenants with figures of their own: a metric must not grow with the number of tenants. */
const MAX_TENANTS = 20;

/** Brings the gauges that describe the whole platform up to date before each scrape. */
@Injectable()
export class PlatformGauges implements OnModuleInit {
  constructor(
    private readonly runs: RunStore,
    private readonly usage: UsageStore,
    private readonly schedules: ScheduleStore,
    private readonly installation: InstallationStore,
    private readonly messaging: Messaging,
    private readonly readiness: PlatformReadiness,
    private readonly metrics: Metrics,
  ) {}

  onModuleInit(): void {
    this.metrics.onScrape(async () => {
      const { waiting, active } = await this.messaging.queueDepth();
      this.metrics.get(QUEUE_DEPTH).set({ state: 'waiting' }, waiting);
      this.metrics.get(QUEUE_DEPTH).set({ state: 'active' }, active);
    });
    const counting = new SingleFlight<ActiveRunCounts>();
    this.metrics.onScrape(async () => {
      const { states, tenants } = await counting.run(() => this.runs.countActive(MAX_TENANTS));
      for (const [state, { runs, oldestSeconds }] of Object.entries(states)) {
        this.metrics.get(RUNS).set({ state }, runs);
        if (state !== 'suspended') this.metrics.get(OLDEST_RUN).set({ state }, oldestSeconds);
      }
      this.metrics.get(TENANT_RUNS).reset();
      for (const { runs, ...labels } of tenants) this.metrics.get(TENANT_RUNS).set(labels, runs);
    });
    const timing = new SingleFlight<number>();
    this.metrics.onScrape(async () => {
      this.metrics.get(SCHEDULES_OVERDUE).set(await timing.run(() => this.schedules.overdueSeconds()));
    });
    const measuring = new SingleFlight<InstallationState>();
    this.metrics.onScrape(async () => {
      const state = await measuring.run(() => this.installation.state());
      const { bytes, backupAgeSeconds, pausedSchedules, sleepOverdueSeconds, parkedRuns, endedNext } = state;
      this.metrics.get(DATABASE_BYTES).set(bytes);
      this.metrics.get(PAUSED_SCHEDULES).set(pausedSchedules);
      this.metrics.get(SLEEP_OVERDUE).set(sleepOverdueSeconds);
      this.metrics.get(PARKED).set(parkedRuns);
      this.metrics.get(ENDED_NEXT).set(endedNext);
      this.metrics.get(BACKUP_AGE).set(backupAgeSeconds ?? 0);
    });
    this.metrics.onScrape(async () => {
      const policy = await this.messaging.evictionPolicy();
      this.metrics.get(REDIS_EVICTS).set(policy === undefined ? 0 : 1);
    });
    const summing = new SingleFlight<StoredBytes[]>();
    this.metrics.onScrape(async () => {
      const tenants = await summing.run(() => this.usage.largest(MAX_TENANTS));
      this.metrics.get(TENANT_BYTES).reset();
      for (const { tenant, storedBytes } of tenants)
        this.metrics.get(TENANT_BYTES).set({ tenant }, storedBytes);
    });
    this.metrics.onScrape(async () => {
      const { ready } = await this.readiness.report();
      this.metrics.get(READY).set(ready ? 1 : 0);
    });
    this.metrics.get(INFO).set({ version: releaseOf() }, 1);
  }
}
