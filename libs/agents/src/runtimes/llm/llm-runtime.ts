import { TaskState, USAGE } from '@baton/a2a';
import { ComputePool } from '@baton/compute';
import { Logger, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Outbound } from '../../outbound/outbound.js';
import {
  type AgentOutput,
  type AgentRuntime,
  artifactChunk,
  completed,
  dataPart,
  failed,
  inputRequired,
  status,
  type Turn,
} from '../../runtime.js';
import { SecretReader, TokenBudget, TokensExceeded } from '../../ports.js';
import { AgentFailure } from './agent-failure.js';
import { approvalRequest, takeMessage } from './approval/approval.js';
import { type LlmConfig, llmConfigSchema } from './config.js';
import { Conversation } from './conversation.js';
import type { ModelStep } from './journal-entry.js';
import { leftovers } from './leftovers.js';
import { memoryOf } from './memory.js';
import { ModelMetrics } from './model-metrics.js';
import { PromptReader } from './prompt.js';
import { structuredAnswer, textOfStep } from './structured-answer.js';
import type { AgentTool } from './tools/agent-tool.js';
import { SchemaChecks } from './schema-checks.js';
import { settleCalls } from './tools/settle-calls.js';
import { ToolSources } from './tools/tool-sources.js';

/** How often the model is told that its JSON is not what was asked for. */
const MAX_CORRECTIONS = 2;
/** Of what a provider sends for one answer. Some send all of it, and what they were asked, once more at its end. */
const ANSWER_BOUNDS = {
  maxBytes: 16 * 1024 * 1024,
  maxTotalBytes: 64 * 1024 * 1024,
  json: true,
  limit: 'modelAnswer',
};

/** One turn with what it needs. */
interface OpenTurn {
  turn: Turn;
  config: LlmConfig;
  conversation: Conversation;
  checks: SchemaChecks;
  tools: readonly AgentTool[];
  signal: AbortSignal;
  /** Why this turn's message is no answer about the calls that wait for approval. */
  problem: string | undefined;
}

/**
 * A prompt with a model. Each answer of the model and each result of a tool is journaled before the next step: an
 * attempt that follows a dead one goes on where that was (docs/agents/llm.md).
 */
@Injectable()
export class LlmRuntime implements AgentRuntime {
  readonly name = 'llm';
  /** Longest pause before the first retry of a call, in ms. */
  firstPauseMs = 500;
  /** Settings as they are read, by the version of their agent. */
  private readonly configs = new LRUCache<string, LlmConfig>({ max: 500 });
  private readonly modelMetrics: ModelMetrics;

  constructor(
    private readonly outbound: Outbound,
    private readonly secrets: SecretReader,
    private readonly budget: TokenBudget,
    private readonly sources: ToolSources,
    private readonly metrics: Metrics,
    private readonly logger: Logger,
    private readonly pool: ComputePool,
  ) {
    this.modelMetrics = new ModelMetrics(metrics);
  }

  async *run(turn: Turn, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    const conversation = await Conversation.open(turn);
    try {
      const config = this.configOf(turn);
      const problem = await takeMessage(turn, conversation);
      const opened = await this.sources.open(turn, config, signal);
      const checks = new SchemaChecks(this.pool, turn.tenantId);
      try {
        yield* this.converse({ turn, config, conversation, checks, tools: opened.tools, signal, problem });
      } finally {
        await opened.close();
      }
    } catch (error) {
      if (signal.aborted) return;
      if (!(error instanceof AgentFailure || error instanceof TokensExceeded)) throw error;
      const limit = error instanceof AgentFailure ? error.limit : undefined;
      if (limit !== undefined) this.metrics.limitExceeded.inc({ limit });
      const { tenantId, runId, task } = turn;
      this.logger.warn('agent gave up', { tenantId, taskId: task.id, runId, reason: error.message });
      yield withUsage(failed(turn, error.message), conversation);
    }
  }

  /** A version never changes: it is read once. */
  private configOf({ tenantId, agent }: Turn): LlmConfig {
    const { id, version, definition } = agent;
    const key = version === undefined ? undefined : `${tenantId} ${id} ${version}`;
    const known = key === undefined ? undefined : this.configs.get(key);
    const config = known ?? llmConfigSchema.parse(definition.config);
    if (key !== undefined) this.configs.set(key, config);
    return config;
  }

  /** Step by step until the model has answered. */
  private async *converse(open: OpenTurn): AsyncGenerator<AgentOutput> {
    const { turn, config, conversation, checks, tools, signal } = open;
    // The SDK of the models is large: a process loads it when a run needs it.
    const [{ openModel }, { ModelSteps, roomInBudget }] = await Promise.all([
      import('./providers.js'),
      import('./model-steps.js'),
    ]);
    const answers = this.outbound.fetchWithin(ANSWER_BOUNDS);
    const model = await openModel(config, turn.tenantId, this.secrets, answers);
    const { budget, modelMetrics: metrics, firstPauseMs } = this;
    const steps = new ModelSteps(turn, config, model, { budget, metrics, firstPauseMs });
    const context = await this.context(open);
    if (turn.attempt > 1) yield* leftovers(turn, conversation, config.output !== undefined);
    for (;;) {
      const waiting = yield* settleCalls(turn, conversation, tools, checks, signal);
      if (signal.aborted) return;
      if (waiting.length > 0) {
        await conversation.add({ kind: 'waiting', callIds: waiting.map(({ callId }) => callId) });
        yield withUsage(inputRequired(turn, approvalRequest(waiting, open.problem)), conversation);
        return;
      }
      const last = conversation.last();
      const isAnswer =
        last?.kind === 'step' && conversation.callsOf(conversation.steps().length).length === 0;
      if (isAnswer && (yield* this.end(open, last))) return;
      this.assertSteps(config, conversation);
      const request = { messages: await context(), tools, maxOutputTokens: undefined };
      const maxOutputTokens = roomInBudget(config, conversation.usage().run, request);
      const number = conversation.steps().length + 1;
      const step = yield* steps.step(number, { ...request, maxOutputTokens }, signal);
      await conversation.add(step);
      // An answer is followed by the turn's end, which says the same.
      if (conversation.pendingCalls().length > 0) {
        yield withUsage(status(turn, TaskState.TASK_STATE_WORKING), conversation);
      }
    }
  }

  /** What the model reads: what it is reminded of, and this task so far. */
  private async context({ turn, config, conversation, signal }: OpenTurn) {
    const memory = await memoryOf(turn, config.memory);
    const reader = new PromptReader(this.outbound);
    const prompt = (at: number) => reader.prompt(turn.task.history[at] ?? turn.message, signal);
    return async () => [...memory, ...(await conversation.messages(prompt))];
  }

  /**
   * End the turn with the model's answer.
   * @returns false if the model is asked once more, because its answer is not what it should be
   */
  private async *end(open: OpenTurn, answer: ModelStep): AsyncGenerator<AgentOutput, boolean> {
    const { turn, config, conversation, checks } = open;
    assertWhole(answer, config);
    const text = textOfStep(answer);
    if (config.output) {
      const { schema } = config.output;
      const found = await structuredAnswer(text, (json) => checks.answer(schema, json));
      if ('wrong' in found) {
        if (conversation.correctionsOfThisRun() >= MAX_CORRECTIONS) {
          throw new AgentFailure(`The model's answer is not of the agent's output schema: ${found.wrong}.`);
        }
        await conversation.add({ kind: 'correction', text: correction(found.wrong) });
        return false;
      }
      const artifactId = `output-${conversation.steps().length}`;
      yield artifactChunk(turn, { artifactId, name: 'output', parts: [dataPart(found.value)] });
    } else if (text.trim() === '') throw new AgentFailure('The model gave no answer.');
    yield withUsage(completed(turn), conversation);
    return true;
  }

  private assertSteps({ steps }: LlmConfig, conversation: Conversation): void {
    if (conversation.stepsOfThisRun().length < steps) return;
    throw new AgentFailure(
      `The model had not answered after ${steps} steps (steps of the agent's settings): allow more, or ask for less.`,
    );
  }
}

/** Throws AgentFailure if the provider has cut the answer off. */
function assertWhole({ finish }: ModelStep, { maxOutputTokens, budget }: LlmConfig): void {
  if (finish === 'content-filter') {
    throw new AgentFailure("The provider's filter has stopped the answer: put the question differently.");
  }
  if (finish !== 'length') return;
  const setting = budget.tokens === undefined ? 'maxOutputTokens' : 'maxOutputTokens or budget.tokens';
  const bound = maxOutputTokens === undefined ? '' : ` of ${maxOutputTokens}`;
  throw new AgentFailure(
    `The answer was cut off at the limit${bound} of its tokens: raise ${setting} of the agent's settings.`,
  );
}

const correction = (wrong: string): string =>
  `That is not what was asked for: ${wrong}. Answer again, with JSON of the schema and nothing else.`;

/** The status with the tokens of the task so far, which stay in the task's metadata. */
function withUsage(output: AgentOutput, conversation: Conversation): AgentOutput {
  if (output.$case !== 'statusUpdate') return output;
  const model = conversation.steps().at(-1)?.model;
  const usage = { ...conversation.usage().task, ...(model && { model }) };
  return { ...output, value: { ...output.value, metadata: { [USAGE]: usage } } };
}
