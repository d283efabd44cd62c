import { messageOf, spreadPause, within } from '@baton/telemetry';
import { ClockWatch, Database, pendingText } from '@baton/database';
import { Messaging } from '@baton/messaging';
import { SingleFlight } from '@baton/postgres';
import { Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { WorkerWatch } from './worker-watch.js';

/** A check that takes longer has failed: probes have timeouts of their own. */
const CHECK_MS = 2_000;

/** How long an answer is cached: the route needs no token, and each answer costs queries. */
const KEEP_MS = 1_000;

/** The answer of `/readyz`: each check with `ok`, or with the reason of its failure. */
export interface ReadinessReport {
  ready: boolean;
  checks: Record<string, string>;
  /** Problems in spite of which this process serves its callers. */
  warnings: string[];
}

/** Checks the needs of every process: Postgres, its migrations, messaging. API and worker share it. */
@Injectable()
export class PlatformReadiness {
  private kept: { report: Promise<ReadinessReport>; until: number } | undefined;
  private toPrepare: (() => Promise<unknown>) | undefined;
  private preparing: Promise<unknown> | undefined;
  /** A check that got no answer in time is under way until it ends: the next report waits for it and asks no second time. */
  private readonly flights = new Map<string, SingleFlight<unknown>>();

  constructor(
    private readonly database: Database,
    private readonly messaging: Messaging,
    private readonly workers: WorkerWatch,
    private readonly clocks: ClockWatch,
  ) {}

  /**
   * What this process does once before it is ready, so that its first tasks are not slow. If it fails, they are.
   * @param prepare called when Postgres has all migrations
   */
  prepareWith(prepare: () => Promise<unknown>): void {
    this.toPrepare = prepare;
  }

  /** At most a second old. Never rejects. */
  report(): Promise<ReadinessReport> {
    if (!this.kept || this.kept.until < performance.now()) {
      const kept = { report: this.runChecks(), until: Infinity };
      this.kept = kept;
      void kept.report.then(() => (kept.until = performance.now() + KEEP_MS));
    }
    return this.kept.report;
  }

  /** Resolves when this process is ready for the first time. */
  async untilReady(): Promise<void> {
    while (!(await this.report()).ready) await delay(spreadPause(KEEP_MS), undefined, { ref: false });
  }

  private async runChecks(): Promise<ReadinessReport> {
    const warnings: string[] = [];
    const probes = {
      postgres: () => this.database.ping(),
      migrations: () => this.assertMigrated(),
      [`messaging (${this.messaging.driver})`]: () => this.messaging.ping(),
    };
    const [outcomes] = await Promise.all([
      Promise.all(
        Object.entries(probes).map(async ([name, probe]) => [name, await this.check(name, probe)] as const),
      ),
      // Without Postgres the warning fails; the check of Postgres reports it.
      this.check('workers', async () => warnings.push(...(await this.workersWarning()))),
      this.check('refusal', async () => warnings.push(...(await this.refusalWarning()))),
      this.check('eviction', async () => warnings.push(...(await this.evictionWarning()))),
    ]);
    if (this.database.isFull) {
      warnings.push('postgres refuses new connections, because there are too many: some calls fail with 503');
    }
    if (this.database.isDiskFull) {
      warnings.push('postgres cannot write, because its disk is full: calls that write fail with 503');
    }
    if (this.database.isReadOnly) {
      warnings.push(
        'postgres may only be read (a standby, or default_transaction_read_only): calls that write fail with 503',
      );
    }
    if (this.clocks.warning !== undefined) warnings.push(this.clocks.warning);
    const ready = outcomes.every(([, text]) => text === 'ok');
    return { ready, checks: Object.fromEntries(outcomes), warnings: [...warnings] };
  }

  private async workersWarning(): Promise<string[]> {
    const { liveWorkers, oldestWaitingSeconds } = await this.workers.load();
    if (liveWorkers > 0) return [];
    const age = oldestWaitingSeconds > 0 ? `; the oldest for ${oldestWaitingSeconds.toFixed(0)} s` : '';
    return [`no worker is alive: tasks are accepted and wait${age}`];
  }

  private async refusalWarning(): Promise<string[]> {
    const reason = await this.messaging.refusal();
    return reason === undefined
      ? []
      : [`messaging (${this.messaging.driver}) refuses commands (${reason}): tasks are accepted and wait`];
  }

  private async evictionWarning(): Promise<string[]> {
    const policy = await this.messaging.evictionPolicy();
    return policy === undefined
      ? []
      : [`redis may delete the queue, because its maxmemory-policy is ${policy}: set it to noeviction`];
  }

  /** The first time, it prepares this process as well. */
  private async assertMigrated(): Promise<void> {
    const pending = await this.database.pendingMigrations();
    if (pending.length > 0) throw new Error(pendingText(pending));
    // It may have been changed since the start.
    await this.database.assertMasterKey();
    this.preparing ??= this.toPrepare?.().catch(() => undefined);
    await this.preparing;
  }

  /** `ok`, or the reason. The errors of our stores hold no secrets and can be shown. */
  private async check(name: string, probe: () => Promise<unknown>): Promise<string> {
    const flight = this.flights.get(name) ?? new SingleFlight<unknown>();
    this.flights.set(name, flight);
    const outcome = flight.run(probe).then(() => 'ok', messageOf);
    return (await within(outcome, CHECK_MS)) ?? `no answer within ${CHECK_MS} ms`;
  }
}
