import { TaskState } from '@baton/a2a';
import type { StopReason } from '@baton/agents';
import { Environment } from '@baton/config';
import { type HeartbeatEvent, LeaseKeeper, type LeaseKey, type RunKey, TaskStore } from '@baton/database';
import { Messaging, type Unsubscribe } from '@baton/messaging';
import { countDatabaseTimeouts, Logger, Metrics } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';
import { setMaxListeners } from 'node:events';
import { WorkerIdentity } from './worker-identity.js';

/** After this time without Postgres a worker gives up the runs that it has not claimed, so that others can. */
const CUT_OFF_MS = 10_000;
const CUT_OFF = new Error('this worker does not reach Postgres');

/**
 * The runs that this worker executes. Extends their leases, and stops runs that were canceled or lost. A cancel arrives
 * by control message. If that message is lost, the lost lease shows the cancel.
 */
@Injectable()
export class ActiveRuns implements OnModuleInit, OnApplicationShutdown {
  private readonly active = new Map<string, { key: RunKey; controller: AbortController }>();
  private leases: LeaseKeeper | undefined;
  private leaseSession: string | undefined;
  private stopControl: Unsubscribe | undefined;
  private cutOffController = forManyRuns();
  private cutOffTimer: NodeJS.Timeout | undefined;
  /** Called when the heartbeat no longer reaches Postgres, and when it does again. */
  onPostgres: ((isReached: boolean) => void) | undefined;
  /** Called when the leases have another session. */
  onSession: (() => void) | undefined;

  constructor(
    private readonly tasks: TaskStore,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
    private readonly worker: WorkerIdentity,
    private readonly logger: Logger,
    private readonly metrics: Metrics,
  ) {}

  async onModuleInit(): Promise<void> {
    this.stopControl = await this.messaging.subscribeControl((message) => {
      if (message.type === 'run-canceled') this.stop(message.runId, 'canceled');
    });
    // Past a pooler: a heartbeat must not wait until others give a connection back.
    const { databaseDirectUrl: databaseUrl, databaseSystemKey: systemKey } = this.environment;
    const { leaseMs, leaseHeartbeatMs: heartbeatMs, loopStallMs } = this.environment;
    this.leases = new LeaseKeeper(
      { databaseUrl, systemKey, workerId: this.worker.id, leaseMs, heartbeatMs, loopStallMs },
      (event) => this.onHeartbeat(event),
    );
  }

  /** Not earlier: the last runs need their leases until they finish. */
  async onApplicationShutdown(): Promise<void> {
    clearTimeout(this.cutOffTimer);
    this.stopControl?.();
    await this.leases?.close();
  }

  /** The name under which runs are claimed here. */
  get workerId(): string {
    return this.worker.id;
  }

  /** The session at Postgres that extends the leases. Undefined: not known yet, or a pooler stands between. */
  get session(): string | undefined {
    return this.leaseSession;
  }

  /** Aborts when the heartbeat has not reached Postgres for ten seconds. Once it does again, there is another signal. */
  get cutOff(): AbortSignal {
    return this.cutOffController.signal;
  }

  /** Number of runs in progress. */
  get size(): number {
    return this.active.size;
  }

  /**
   * Extend the lease of a run before the answer of its claim arrives: the event loop may be blocked between the claim's
   * commit and its answer.
   */
  async whileClaiming<T>(tenantId: string, runId: string, claim: () => Promise<T>): Promise<T> {
    const key: LeaseKey = { tenantId, runId, attempt: 0 };
    this.leases?.hold(key);
    try {
      return await claim();
    } finally {
      this.leases?.release(key);
    }
  }

  /** Hold a claimed run until `release`. Its controller aborts with a `StopReason`. */
  hold(key: RunKey): AbortController {
    const controller = new AbortController();
    this.active.set(key.runId, { key, controller });
    this.leases?.hold(key);
    return controller;
  }

  /** The run is over, or another worker owns it. Does not affect a later attempt of the same run in this worker. */
  release(key: RunKey): void {
    this.leases?.release(key);
    if (this.active.get(key.runId)?.key.attempt === key.attempt) this.active.delete(key.runId);
  }

  /** Stop all runs, e.g. at shutdown. */
  stopAll(reason: StopReason): void {
    for (const { controller } of this.active.values()) controller.abort(reason);
  }

  /**
   * The log has refused the run's events: stop the run, with the reason that its task shows. Resolves when its
   * controller has aborted. The runtime needs the reason: a canceled run must cancel its work on other servers.
   */
  async stopRefused(key: RunKey): Promise<void> {
    await this.stopLost(key);
    const held = this.active.get(key.runId);
    if (held?.key.attempt === key.attempt) held.controller.abort('lease-lost');
  }

  private stop(runId: string, reason: StopReason): void {
    this.active.get(runId)?.controller.abort(reason);
  }

  /** Called with the messages of the lease thread. */
  onHeartbeat(event: HeartbeatEvent): void {
    if (event.type === 'lost') for (const lease of event.leases) void this.stopLost(lease);
    else if (event.type === 'failed') this.lostPostgres(event.reason);
    else if (event.type === 'back') this.foundPostgres();
    else if (event.type === 'timeout') countDatabaseTimeouts(this.metrics)(event.what);
    else if (event.type === 'session') this.changeSession(event.name);
    else this.logger.error('the event loop was blocked: the worker gave up its runs', { forMs: event.forMs });
  }

  private changeSession(name: string | undefined): void {
    this.leaseSession = name;
    this.onSession?.();
  }

  private lostPostgres(reason: string): void {
    this.logger.warn('lease heartbeat failed', { reason });
    this.cutOffTimer ??= setTimeout(() => this.cutOffController.abort(CUT_OFF), CUT_OFF_MS).unref();
    this.onPostgres?.(false);
  }

  private foundPostgres(): void {
    this.logger.info('lease heartbeat is back');
    clearTimeout(this.cutOffTimer);
    this.cutOffTimer = undefined;
    if (this.cutOff.aborted) this.cutOffController = forManyRuns();
    this.onPostgres?.(true);
  }

  /** A failure here does no harm: the thread repeats this with every beat until the run is released. */
  private async stopLost({ runId, attempt }: Pick<LeaseKey, 'runId' | 'attempt'>): Promise<void> {
    const held = this.active.get(runId);
    if (held?.key.attempt !== attempt || held.controller.signal.aborted) return;
    const { tenantId, taskId } = held.key;
    try {
      const stored = await this.tasks.get(tenantId, taskId, { historyLength: 0, artifacts: false });
      const canceled = stored?.task.status?.state === TaskState.TASK_STATE_CANCELED;
      held.controller.abort(canceled ? 'canceled' : 'lease-lost');
    } catch (error) {
      this.logger.warn('could not read why a lease was lost', { err: error, tenantId, taskId, runId });
    }
  }
}

/** Every run that is being claimed listens. Without this, Node.js warns of a leak from the eleventh on. */
function forManyRuns(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
