import { Logger, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { type AgentOutput, type AgentRuntime, failed, type Turn } from '../../runtime.js';
import { Patience, TurnStop } from './turn-stop.js';
import { type RemoteConfig, cardUrlOf, remoteConfigSchema } from './remote-config.js';
import { type RemoteConnection, RemoteConnector } from './remote-connection.js';
import { RemoteFailure, remoteFailure } from './remote-failure.js';
import { RemoteMemory } from './remote-memory.js';
import { FIRST_PATIENCE_MS, RemoteTurn } from './remote-turn.js';
import { timeoutSignal } from '../../outbound/timeout-signal.js';

/** How long the remote agent may take to hear that its task is canceled. */
const CANCEL_MS = 2_000;

const REASON_MS = 1_000;

/** What a turn leaves behind. */
interface Attempt {
  connection?: RemoteConnection;
  remote?: RemoteTurn;
  /** The remote task is no longer there, or can't be told anything. */
  outOfReach?: boolean;
}

/**
 * Lets an agent on another A2A server do the work, and relays what it says. The journal holds which task of that
 * server is ours, so another attempt goes on with it; a cancel is passed on.
 */
@Injectable()
export class RemoteA2aRuntime implements AgentRuntime {
  readonly name = 'remote-a2a';

  constructor(
    private readonly connector: RemoteConnector,
    private readonly logger: Logger,
    private readonly metrics: Metrics,
  ) {}

  async *run(turn: Turn, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    const config = remoteConfigSchema.parse(turn.agent.definition.config);
    const stop = new TurnStop(signal, config.timeout);
    const attempt: Attempt = {};
    try {
      attempt.connection = await this.connect(turn, config, stop.signal);
      const memory = new RemoteMemory(turn, cardUrlOf(config).href);
      attempt.remote = new RemoteTurn(turn, config, attempt.connection, memory, stop);
      yield* attempt.remote.outputs();
    } catch (error) {
      const failure = stop.timedOut ? tooLong(config) : error;
      // The journal refuses a run that was canceled, perhaps before we hear that it was.
      if (!(failure instanceof RemoteFailure)) await aborted(signal, REASON_MS);
      if (signal.aborted) return;
      attempt.outOfReach = !(failure instanceof RemoteFailure) || failure.isOutOfReach;
      if (!(failure instanceof RemoteFailure)) throw error;
      if (failure.limit !== undefined) this.metrics.limitExceeded.inc({ limit: failure.limit });
      this.connector.forget(turn, config);
      this.logger.warn('remote agent failed', { err: failure, ...idsOf(turn) });
      yield failed(turn, failure.message);
    } finally {
      stop.clear();
      if (mustCancel(attempt, signal)) await this.cancel(attempt, turn);
    }
  }

  /** Agents that are just being started again are waited for. */
  private async connect(turn: Turn, config: RemoteConfig, signal: AbortSignal): Promise<RemoteConnection> {
    const patience = new Patience(Math.min(FIRST_PATIENCE_MS, config.reconnect), signal);
    for (;;) {
      try {
        return await this.connector.connect(turn, config, signal);
      } catch (error) {
        if (!(error instanceof RemoteFailure) || !error.passes || patience.isOver) throw error;
        await patience.wait();
      }
    }
  }

  private async cancel({ connection, remote }: Attempt, turn: Turn): Promise<void> {
    const options = {
      signal: timeoutSignal(CANCEL_MS),
      serviceParameters: connection?.serviceParameters ?? {},
    };
    const request = { tenant: '', id: remote?.taskId ?? '', metadata: undefined };
    await connection?.client.cancelTask(request, options).catch((err: unknown) => {
      const reason = remoteFailure(err, connection.host, connection.redactor).message;
      this.logger.warn('remote agent could not be told of a cancel', { reason, ...idsOf(turn) });
    });
  }
}

/** Not when another attempt will go on with the remote task. */
function mustCancel({ remote, outOfReach }: Attempt, signal: AbortSignal): boolean {
  if (remote?.taskId === undefined || remote.isOver() || outOfReach) return false;
  return !signal.aborted || signal.reason === 'canceled';
}

function tooLong(config: RemoteConfig): RemoteFailure {
  const seconds = config.timeout / 1000;
  const message = `The agent at ${cardUrlOf(config).host} did not end the task within ${seconds} s (timeout)`;
  return new RemoteFailure('final', message);
}

const idsOf = ({ tenantId, runId, task, agent }: Turn) => ({
  ...{ tenantId, runId },
  ...{ taskId: task.id, agent: agent.slug },
});

/** Until the signal has aborted, or the time is over. */
async function aborted(signal: AbortSignal, ms: number): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
