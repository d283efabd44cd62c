import type { Logger } from '@baton/telemetry';
import type { AgentExecutor } from '@a2a-js/sdk/server';
import type { AgentOutput, Turn } from '../../../libs/agents/src/agent-runtime.js';
import { TurnStream } from '../../../libs/agents/src/runtimes/executor/turn-stream.js';
import { converse } from '../../../libs/agents/src/runtimes/executor/converse.js';
import { HostedTurn, type TurnHost } from '../../../libs/agents/src/runtimes/executor/child/hosted-turn.js';
import type { FromAgent, ToAgent } from '../../../libs/agents/src/runtimes/executor/protocol.js';
import { turnRequest } from '../../../libs/agents/src/runtimes/executor/turn-request.js';
import { portsOf } from '../../../libs/agents/src/runtimes/executor/turn-ports.js';
import {
  type TurnStepPorts,
  TurnSteps,
} from '../../../libs/agents/src/runtimes/executor/steps/turn-steps.js';

/** Runs both sides of a turn in this process. Their messages go through JSON, as between processes. */
export async function* converseHere(
  executor: AgentExecutor,
  turn: Turn,
  signal: AbortSignal,
  logger: Logger,
  ports?: TurnStepPorts,
): AsyncGenerator<AgentOutput> {
  if (signal.aborted) return;
  let steps: TurnSteps | undefined = await TurnSteps.open(turn, ports);
  if (steps.tools) yield* steps.tools.waitOn(signal);
  while (steps) steps = yield* executeHere(executor, turn, steps, signal, logger);
}

/** One call of `execute`. */
async function* executeHere(
  executor: AgentExecutor,
  turn: Turn,
  steps: TurnSteps,
  signal: AbortSignal,
  logger: Logger,
): AsyncGenerator<AgentOutput, TurnSteps | undefined> {
  const request = await turnRequest(steps.journal);
  const host: TurnHost = {
    maxEventBytes: 1_000_000,
    maxUnsentSize: 1_000_000,
    createExecutor: () => executor,
    send: (json) => toStream(stream, JSON.parse(json) as FromAgent, json.length),
    flushSoon: (flushed) => setImmediate(() => flushed.flush()),
    block: () => undefined,
    onEnd: () => undefined,
  };
  const stream = new TurnStream(1, (message) => toHosted(hosted, message), portsOf(turn));
  const hosted = new HostedTurn(1, JSON.parse(JSON.stringify(request)) as typeof request, host);
  void hosted.run();
  return yield* converse(stream, turn, steps, signal, logger);
}

function toStream(stream: TurnStream, message: FromAgent, length: number): void {
  if (message.type === 'events') stream.events(message, length);
  else if (message.type === 'finished') stream.end();
  else if (message.type === 'step') stream.step(message.step);
  else if (message.type === 'secret') stream.secret(message);
  else if (message.type === 'returned') {
    stream.returned(message.error, message.parked, message.mismatch);
  }
}

function toHosted(hosted: HostedTurn, message: ToAgent): void {
  if (message.type === 'cancel') hosted.cancel();
  else if (message.type === 'close') hosted.close();
  else if (message.type === 'credit') hosted.credit(message.size);
  else if (message.type === 'secret-reply') hosted.onSecret(message.id, message.reply);
  else if (message.type === 'model-piece') hosted.onPiece(message.id, message.piece);
  else if (message.type === 'step-reply') hosted.onStepReply(message.id, message.reply);
}
