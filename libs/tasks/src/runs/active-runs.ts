import { TaskState } from '@baton/a2a';
import type { StopReason } from '@baton/agents';
import { Environment } from '@baton/config';
import { type RunKey, RunStore, TaskStore } from '@baton/database';
import { Messaging, type Unsubscribe } from '@baton/messaging';
import { Logger } from '@baton/telemetry';
import { Injectable, type OnApplicationShutdown, type OnModuleInit } from '@nestjs/common';

/**
 * The runs this worker holds: keeps their leases alive and stops those that were canceled or lost. A cancel
 * arrives by control message; the heartbeat is the fallback when that message is lost.
 */
@Injectable()
export class ActiveRuns implements OnModuleInit, OnApplicationShutdown {
  private readonly active = new Map<string, { key: RunKey; controller: AbortController }>();
  private timer: NodeJS.Timeout | undefined;
  private beating = false;
  private stopControl: Unsubscribe | undefined;

  constructor(
    private readonly runs: RunStore,
    private readonly tasks: TaskStore,
    private readonly messaging: Messaging,
    private readonly environment: Environment,
    private readonly logger: Logger,
  ) {}

  async onModuleInit(): Promise<void> {
    this.stopControl = await this.messaging.subscribeControl((message) => {
      if (message.type === 'run-canceled') this.stop(message.runId, 'canceled');
    });
    this.timer = setInterval(() => void this.beat(), this.environment.leaseHeartbeatMs);
    this.timer.unref();
  }

  /** Not earlier: while the last runs finish, their leases must live. */
  onApplicationShutdown(): void {
    clearInterval(this.timer);
    this.stopControl?.();
  }

  /** Number of runs in hand. */
  get size(): number {
    return this.active.size;
  }

  /** Hold a claimed run until `release`. Its controller aborts with a `StopReason`. */
  hold(key: RunKey): AbortController {
    const controller = new AbortController();
    this.active.set(key.runId, { key, controller });
    return controller;
  }

  /** The run is over, or no longer ours. A later attempt of the same run here is left alone. */
  release(key: RunKey): void {
    if (this.active.get(key.runId)?.key.attempt === key.attempt) this.active.delete(key.runId);
  }

  /** Stop everything in hand, e.g. at shutdown. */
  stopAll(reason: StopReason): void {
    for (const { controller } of this.active.values()) controller.abort(reason);
  }

  private stop(runId: string, reason: StopReason): void {
    this.active.get(runId)?.controller.abort(reason);
  }

  private async beat(): Promise<void> {
    if (this.beating || this.active.size === 0) return;
    this.beating = true;
    try {
      const keys = [...this.active.values()].map(({ key }) => key);
      const held = await this.runs.heartbeat(keys, this.environment.leaseMs);
      await Promise.all(keys.filter(({ runId }) => !held.has(runId)).map((key) => this.stopLost(key)));
    } catch (error) {
      this.logger.warn('lease heartbeat failed', { err: error });
    } finally {
      this.beating = false;
    }
  }

  private async stopLost(key: RunKey): Promise<void> {
    if (!this.active.has(key.runId)) return;
    const stored = await this.tasks.get(key.tenantId, key.taskId, { historyLength: 0, artifacts: false });
    const canceled = stored?.task.status?.state === TaskState.TASK_STATE_CANCELED;
    this.stop(key.runId, canceled ? 'canceled' : 'lease-lost');
  }
}
