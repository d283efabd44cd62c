import { Logger, Metrics, type Span } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { setTimeout as delay } from 'node:timers/promises';
import { type AgentOutput, failed, type Turn } from '../../agent-runtime.js';
import { askToSignIn } from '../../ask-to-sign-in.js';
import { type AgentRuntime } from '../../runtime-table.js';
import type { SignInNeeded } from '../../sign-in-needed.js';
import { FIRST_TIMEOUT_MS, RemoteTurn } from './remote-turn.js';
import { TurnStop } from './turn-stop.js';
import { RemoteBackoff } from './remote-backoff.js';
import { type RemoteConfig, cardUrlOf, remoteConfigSchema } from './remote-config.js';
import { type RemoteConnection, RemoteConnector } from './remote-connector.js';
import { RemoteFailure, remoteFailure } from './remote-failure.js';
import { RemoteMemory } from './remote-memory.js';
import { timeoutSignal } from '@baton/outbound';

/** Timeout of the cancel request to the remote agent. */
const CANCEL_MS = 2_000;

/** How long to wait for the signal of a cancel that is in the journal, in ms. */
const ABORT_MS = 1_000;

/** State of a turn that its cleanup needs. */
interface Attempt {
  connection?: RemoteConnection;
  remote?: RemoteTurn;
  /** The remote task no longer exists, or its agent cannot be reached. */
  outOfReach?: boolean;
}

/**
 * Runs a turn on another A2A server and relays its output. The journal holds the id of the remote task, so the next
 * attempt continues with it. A cancel is forwarded.
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
    const memory = new RemoteMemory(turn, cardUrlOf(config).href);
    const attempt: Attempt = {};
    const span = startSpan(turn, config);
    try {
      attempt.connection = await this.connect(turn, config, stop.signal, span?.traceparent);
      attempt.remote = new RemoteTurn(turn, config, attempt.connection, memory, stop);
      for await (const output of attempt.remote.outputs()) {
        // More may have come before the stop. It is read until the id is known that a cancel needs.
        if (!signal.aborted) yield output;
      }
    } catch (error) {
      const failure = stop.timedOut ? tooLong(config) : error;
      // The journal refuses a canceled run, perhaps before the signal of the cancel arrives.
      if (!(failure instanceof RemoteFailure)) await aborted(signal, ABORT_MS);
      if (signal.aborted) return;
      attempt.outOfReach = !(failure instanceof RemoteFailure) || failure.isOutOfReach;
      if (!(failure instanceof RemoteFailure)) throw error;
      if (failure.signIn?.isCallers) {
        // The remote task continues without its caller.
        attempt.outOfReach = true;
        yield await this.waitForSignIn(turn, failure.signIn, memory, attempt);
        return;
      }
      if (failure.limit !== undefined) this.metrics.limitExceeded.inc({ limit: failure.limit });
      this.connector.forget(turn, config);
      this.logger.warn('remote agent failed', { err: failure, ...idsOf(turn) });
      span?.fail(stop.timedOut ? 'timeout' : 'remote-failure');
      yield failed(turn, failure.message);
    } finally {
      stop.clear();
      if (mustCancel(attempt, signal)) await this.cancel(attempt, turn);
      span?.set({ 'baton.remote.task.id': attempt.remote?.taskId });
      span?.end();
    }
  }

  /** The next attempt sends the message, or continues with the remote task. */
  private async waitForSignIn(
    turn: Turn,
    needed: SignInNeeded,
    memory: RemoteMemory,
    { remote }: Attempt,
  ): Promise<AgentOutput> {
    const mayHaveArrived = remote ? remote.mayHaveArrived : (await memory.recall())?.ofRun;
    if (!mayHaveArrived) await memory.noteUnsent();
    return askToSignIn(turn, needed);
  }

  /** Retries while the agent cannot be reached: it may be restarting. */
  private async connect(
    turn: Turn,
    config: RemoteConfig,
    signal: AbortSignal,
    traceparent: string | undefined,
  ): Promise<RemoteConnection> {
    const backoff = new RemoteBackoff(Math.min(FIRST_TIMEOUT_MS, config.reconnect), signal);
    for (;;) {
      try {
        return await this.connector.connect(turn, config, signal, traceparent);
      } catch (error) {
        if (!(error instanceof RemoteFailure) || !error.isUnanswered || backoff.isExpired) throw error;
        await backoff.wait();
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
      this.logger.warn('cancel of a remote task failed', { reason, ...idsOf(turn) });
    });
  }
}

/** The span of the calls to a remote agent (OpenTelemetry, GenAI: invoke agent, client). */
function startSpan({ span, agent }: Turn, config: RemoteConfig): Span | undefined {
  const { hostname, port } = cardUrlOf(config);
  return span?.start(`invoke_agent ${agent.slug}`, {
    kind: 'client',
    attributes: {
      'gen_ai.operation.name': 'invoke_agent',
      'gen_ai.agent.name': agent.slug,
      'server.address': hostname,
      'server.port': port === '' ? undefined : Number(port),
    },
  });
}

/** False if another attempt will continue with the remote task. */
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
  tenantId,
  runId,
  taskId: task.id,
  agent: agent.slug,
});

/** Waits until the signal aborts, but no longer than `ms`. */
async function aborted(signal: AbortSignal, ms: number): Promise<void> {
  await delay(ms, undefined, { signal }).catch(() => undefined);
}
