import { type Agent, TaskState, USAGE } from '@baton/a2a';
import { ComputePool } from '@baton/compute';
import { Logger, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import {
  type AgentOutput,
  artifactChunk,
  completed,
  jsonPart,
  failed,
  inputRequired,
  status,
  type Turn,
} from '../../agent-runtime.js';
import { Suspension } from '../../suspension.js';
import { type AgentRuntime } from '../../runtime-table.js';
import { CapReached } from '../../cap-reached.js';
import { InstalledCode } from '../../installed-code.js';
import { TokensExceeded } from '../../tokens-exceeded.js';
import { AgentFailure } from './agent-failure.js';
import { takeMessage, waitingEntry, withTerms } from './approval/approval.js';
import { approvalRequest } from './approval/approval-question.js';
import { allowedMicros, capInputProblem, capQuestion } from './approval/cap-question.js';
import { callCorrection, type WrongCall, wrongCallsFailure } from './wrong-calls.js';
import { partialAnswer } from './finish-reason.js';
import { SignInNeeded } from '../../sign-in-needed.js';
import { ChildNeedsSignIn } from '../../child-needs-sign-in.js';
import { askToSignIn } from '../../ask-to-sign-in.js';
import { type LlmConfig, llmConfigSchema, splitModel } from './llm-config.js';
import { Conversation } from './conversation.js';
import { conversationMessages, hasUnreadResults } from './conversation-messages.js';
import { type ModelStep, textOfStep } from './llm-entry.js';
import { callIdOf } from './recorded-call.js';
import { leftovers, progressArtifact, progressSaid } from './turn-artifacts.js';
import { StepArtifacts } from './step-artifacts.js';
import { memoryOf } from './memory.js';
import type { Compaction } from './compaction.js';
import type { ModelRequest } from './model-call.js';
import { ModelCalls } from './model-calls.js';
import type { AgentModel } from './model-chain.js';
import { PromptReader } from './prompt-reader.js';
import { READ_RESULT } from './result-output.js';
import { RequestTooLarge } from './request-too-large.js';
import { sendable } from './sendable.js';
import { SchemaChecks } from './schema-checks.js';
import { answerCorrection, structuredAnswer } from './structured-answer.js';
import { fileFormsOf } from './tool-files.js';
import { ToolFilesRefused } from './tool-files-refused.js';
import { type AgentTool, type OpenTools, type ReadResource, ToolSources } from './tools/tool-sources.js';
import type { RemoteCall } from './tools/remote-call.js';
import { readResourceTool } from './tools/read-resource.js';
import { readResultTool } from './tools/read-result.js';
import { withInstructions } from './tools/server-instructions.js';
import { runToolCalls } from './tools/tool-calls.js';

/** Maximum corrections of invalid JSON per turn. */
const MAX_CORRECTIONS = 2;

/** One turn and its parts. */
interface OpenTurn {
  turn: Turn;
  config: LlmConfig;
  conversation: Conversation;
  checks: SchemaChecks;
  tools: readonly AgentTool[];
  readResource: ReadResource | undefined;
  signal: AbortSignal;
  /** Why this turn's message does not answer the calls that wait for approval. */
  problem: string | undefined;
}

/**
 * Runs a prompt with a model and tools. Each answer of the model and each tool result is journaled before the next
 * step. So the next attempt continues where a crashed one stopped (docs/agents/llm.md).
 */
@Injectable()
export class LlmRuntime implements AgentRuntime {
  readonly name = 'llm';
  /** Parsed settings by agent version. */
  private readonly configs = new LRUCache<string, LlmConfig>({ max: 500 });

  constructor(
    private readonly models: ModelCalls,
    private readonly sources: ToolSources,
    private readonly metrics: Metrics,
    private readonly logger: Logger,
    private readonly pool: ComputePool,
    private readonly code: InstalledCode,
  ) {}

  codeOf(agent: Pick<Agent, 'slug' | 'code' | 'origin'>): string | undefined {
    return this.code.codeOf(agent);
  }

  async *run(turn: Turn, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    const conversation = await Conversation.open(turn);
    /** Why this turn's message does not answer what was asked. */
    let problem: string | undefined;
    try {
      const config = this.configOf(turn);
      const checks = new SchemaChecks(this.pool, turn.tenantId);
      let opening: Promise<OpenTools> | undefined;
      const open = (): Promise<OpenTools> => (opening ??= this.sources.open(turn, config, signal));
      try {
        problem = await takeMessage(turn, conversation, async (callId, input) => {
          if (callId === conversation.approvals.capQuestionId()) return capInputProblem(input);
          const call = conversation.pendingCalls().find((pending) => callIdOf(pending) === callId);
          if (call && conversation.hasBegun(call)) return 'a call is repeated only with the same input';
          const tool = (await open()).tools.find(({ name }) => name === call?.toolName);
          // The result of the call reports that its tool no longer exists.
          return tool && checks.input(tool.name, tool.inputSchema, input);
        });
        await this.goOnOverCap(turn, conversation, signal);
        if (!opening) yield* this.waitOn(turn, config, conversation, signal);
        const { tools, instructions, notes, readResource } = await open();
        const prompted = withInstructions(config, instructions, notes);
        yield* this.converse({
          turn,
          config: prompted,
          conversation,
          checks,
          tools,
          readResource,
          signal,
          problem,
        });
      } finally {
        await opening?.then(
          (opened) => opened.close(),
          () => undefined,
        );
      }
    } catch (error) {
      if (signal.aborted) return;
      if (error instanceof CapReached) {
        const callId = conversation.approvals.capQuestionId();
        await conversation.add({ kind: 'waiting', callIds: [callId], cap: error.question });
        const parts = capQuestion(callId, error.question, problem);
        return void (yield withUsage(inputRequired(turn, parts), conversation));
      }
      if (error instanceof ChildNeedsSignIn || (error instanceof SignInNeeded && error.isCallers)) {
        const asked = await askToSignIn(turn, error);
        return void (yield withUsage(asked, conversation));
      }
      if (!(error instanceof AgentFailure || error instanceof TokensExceeded)) throw error;
      const limit = error instanceof AgentFailure ? error.limit : undefined;
      if (limit !== undefined) this.metrics.limitExceeded.inc({ limit });
      const { tenantId, runId, task } = turn;
      this.logger.warn('agent gave up', { tenantId, taskId: task.id, runId, reason: error.message });
      yield withUsage(failed(turn, error.message), conversation);
    }
  }

  /** Applies the answer in this turn's message about a spending cap. Throws AgentFailure if a person has refused to continue. */
  private async goOnOverCap(turn: Turn, conversation: Conversation, signal: AbortSignal): Promise<void> {
    const { question, decision } = conversation.approvals.capDecision() ?? {};
    if (!question || !decision) return;
    if (!decision.approved)
      throw new AgentFailure(`${question.reason} A person has refused more: ${decision.reason ?? 'no'}`);
    const { tenantId, runId, task } = turn;
    const allowed = { ...question, micros: allowedMicros(question, decision) };
    await this.models.budget.allow(tenantId, runId, allowed, `${task.id}/${decision.callId}`, signal);
  }

  /** Suspends the turn again if all its calls only wait for their servers. No server is opened for that. */
  private async *waitOn(
    turn: Turn,
    config: LlmConfig,
    conversation: Conversation,
    signal: AbortSignal,
  ): AsyncGenerator<AgentOutput> {
    const calls = conversation
      .pendingCalls()
      .map((call) => ({ call, remote: conversation.remoteCallOf(call) }));
    if (calls.length === 0) return;
    let wakeInMs = Infinity;
    for (const { call, remote } of calls) {
      if (!remote?.task) return;
      const keep = (kept: RemoteCall): Promise<void> => conversation.addRemoteCall(call, kept);
      const waiting = await this.sources.pollTask(turn, config, remote, keep, signal);
      if (!waiting) return;
      wakeInMs = Math.min(wakeInMs, waiting.waitMs);
      const { said } = waiting;
      const shownCall = { id: callIdOf(call), tool: call.toolName };
      if (said !== undefined && said !== progressSaid(turn, shownCall))
        yield artifactChunk(turn, progressArtifact(shownCall, said));
    }
    throw new Suspension([], wakeInMs);
  }

  /** Parses the settings of each version once, because a version never changes. */
  private configOf({ tenantId, agent }: Turn): LlmConfig {
    const { id, version, definition } = agent;
    const key = version === undefined ? undefined : `${tenantId} ${id} ${version}`;
    const known = key === undefined ? undefined : this.configs.get(key);
    const config = known ?? llmConfigSchema.parse(definition.config);
    if (key !== undefined) this.configs.set(key, config);
    return config;
  }

  /** Runs steps until the model has answered. */
  private async *converse(open: OpenTurn): AsyncGenerator<AgentOutput> {
    const { turn, config, conversation, checks, signal } = open;
    // The AI SDK is large. A process loads it when a run needs it.
    const [{ roomInBudget }, { Compaction }] = await Promise.all([
      import('./room-in-budget.js'),
      import('./compaction.js'),
    ]);
    const compaction = new Compaction(turn, config, conversation, this.models, this.logger);
    const models = await this.models.openAll(turn, config, (call, record) => conversation.add(call, record));
    const context = await this.context(open, compaction);
    if (turn.attempt > 1 || turn.origin) yield* leftovers(turn, conversation, config.output !== undefined);
    for (;;) {
      assertWhole(conversation, config);
      const waiting = yield* runToolCalls(
        turn,
        conversation,
        callableTools(open),
        checks,
        signal,
        this.metrics,
      );
      if (signal.aborted) return;
      if (waiting.length > 0) {
        const asked = withTerms(waiting, config, conversation);
        await conversation.add(waitingEntry(asked));
        yield withUsage(inputRequired(turn, approvalRequest(asked, open.problem)), conversation);
        return;
      }
      const last = conversation.last();
      if (last?.kind === 'step' && last.wrongCalls) await this.correctCalls(open, last.wrongCalls);
      else {
        const isAnswer =
          last?.kind === 'step' && conversation.callsOf(conversation.steps().length).length === 0;
        if (isAnswer && (yield* this.end(open, last))) return;
      }
      this.assertSteps(config, conversation);
      const whole = async (model: AgentModel): Promise<ModelRequest> => ({
        messages: await context(model),
        tools: offeredTools(open, compaction.windowOf(model.config)),
        maxOutputTokens: undefined,
      });
      let sent: { model: AgentModel; request: ModelRequest } | undefined;
      const requestOf = async (model: AgentModel): Promise<ModelRequest> => {
        let request = await whole(model);
        for (const keepsLast of [false, true]) {
          if (!compaction.isDue(model.config, request)) break;
          if (await compaction.run(model, signal, keepsLast)) request = await whole(model);
        }
        sent = { model, request };
        return { ...request, maxOutputTokens: roomInBudget(model.config, conversation.usage().run, request) };
      };
      const step = () => {
        const speech = new StepArtifacts(turn, conversation.steps().length + 1, config.output !== undefined);
        return models.step(speech, conversation.stepsOfThisRun().at(-1), requestOf, signal);
      };
      for (let isShortened = false; ;) {
        try {
          yield* step();
          break;
        } catch (error) {
          if (error instanceof ToolFilesRefused) await conversation.add({ kind: 'files-refused' });
          else {
            const isDue = error instanceof RequestTooLarge && config.compaction !== 'off' && !isShortened;
            if (!isDue || !sent) throw error;
            compaction.learn(sent.model.config, sent.request);
            if (!(await compaction.run(sent.model, signal, true))) throw error;
            isShortened = true;
          }
        }
      }
      // After an answer without calls, the turn's final status has the usage.
      if (conversation.pendingCalls().length > 0) {
        yield withUsage(status(turn, TaskState.TASK_STATE_WORKING), conversation);
      }
    }
  }

  /** Reads the messages for the model: the memory of earlier tasks, and this task so far. */
  private async context({ turn, config, conversation, signal }: OpenTurn, compaction: Compaction) {
    const memory = await memoryOf(turn, config.memory, compaction.windowOf(config) / 4);
    const reader = new PromptReader(turn.outbound);
    const prompt = (at: number) => {
      const message = turn.task.history[at] ?? turn.message;
      return reader.prompt(message, signal, message.messageId !== turn.message.messageId);
    };
    return async ({ config: settings, index }: AgentModel) => {
      const { model } = settings;
      const asked = { model, index, window: compaction.windowOf(settings), files: fileFormsOf(settings) };
      const messages = await conversationMessages(conversation, asked, prompt);
      return sendable([...memory, ...messages], splitModel(model).provider);
    };
  }

  /**
   * Ends the turn with the model's answer.
   * @returns false if the answer is invalid and the model must correct it
   */
  private async *end(open: OpenTurn, answer: ModelStep): AsyncGenerator<AgentOutput, boolean> {
    const { turn, config, conversation, checks } = open;
    const text = textOfStep(answer);
    if (config.output) {
      const { schema } = config.output;
      const found = await structuredAnswer(text, (json) => checks.answer(schema, json));
      if ('wrong' in found) {
        if (conversation.correctionsOfThisRun() >= MAX_CORRECTIONS) {
          throw new AgentFailure(`The model's answer is not of the agent's output schema: ${found.wrong}.`);
        }
        await conversation.add({ kind: 'correction', text: answerCorrection(found.wrong) });
        return false;
      }
      const artifactId = `output-${conversation.steps().length}`;
      yield artifactChunk(turn, { artifactId, name: 'output', parts: [jsonPart(found.value)] });
    } else if (text.trim() === '') throw new AgentFailure('The model gave no answer.');
    yield withUsage(completed(turn), conversation);
    return true;
  }

  /** Tells the model once why its calls were not made. If they are wrong again, the turn fails. */
  private async correctCalls({ config, conversation }: OpenTurn, calls: readonly WrongCall[]): Promise<void> {
    const steps = conversation.stepsOfThisRun();
    const isCorrected = steps.at(-2)?.wrongCalls !== undefined;
    if (isCorrected || steps.length >= config.steps) throw new AgentFailure(wrongCallsFailure(calls));
    await conversation.add({ kind: 'correction', text: callCorrection(calls) });
  }

  private assertSteps({ steps }: LlmConfig, conversation: Conversation): void {
    if (conversation.stepsOfThisRun().length < steps) return;
    throw new AgentFailure(
      `The model had not answered after ${steps} steps (steps of the agent's settings): allow more, or ask for less.`,
    );
  }
}

/**
 * The tools that a model is offered: those of the agent, one that reads linked resources, and one that reads on in results.
 * @param window tokens of its context
 */
const offeredTools = (open: OpenTurn, window: number): readonly AgentTool[] => {
  const tools = withResources(open);
  return hasUnreadResults(open.conversation, window) ? [...tools, readResultTool(open.conversation)] : tools;
};

/** The tools of the calls that are due. Another model than the next one may have asked for them. */
const callableTools = (open: OpenTurn): readonly AgentTool[] => {
  const tools = withResources(open);
  return open.conversation.pendingCalls().some(({ toolName }) => toolName === READ_RESULT)
    ? [...tools, readResultTool(open.conversation)]
    : tools;
};

const withResources = ({ tools, conversation, readResource }: OpenTurn): readonly AgentTool[] =>
  readResource && conversation.hasLinks() ? [...tools, readResourceTool(conversation, readResource)] : tools;

/** Throws AgentFailure if the model's last answer is not whole: its calls must not be made. */
function assertWhole(conversation: Conversation, config: LlmConfig): void {
  const last = conversation.steps().at(-1);
  if (!last) return;
  const hasCalls = (last.notMade ?? []).length > 0 || conversation.pendingCalls().length > 0;
  const reason = partialAnswer(last, hasCalls, config);
  if (reason !== undefined) throw new AgentFailure(reason);
}

/** Adds the tokens of the task so far to the metadata of a status. Baton has metered them itself. */
function withUsage(output: AgentOutput, conversation: Conversation): AgentOutput {
  if (output.$case !== 'statusUpdate') return output;
  const model = conversation.steps().at(-1)?.model;
  const usage = { ...conversation.usage().task, ...(model && { model }), metered: true };
  return { ...output, value: { ...output.value, metadata: { [USAGE]: usage } } };
}
