import { type Attributes, clock, type Logger, retryPause, type Span } from '@baton/telemetry';
import { setTimeout as delay } from 'node:timers/promises';
import type { Turn } from '../../agent-runtime.js';
import { TokenBudget } from '../../token-budget.js';
import { TokensExceeded } from '../../tokens-exceeded.js';
import { AgentFailure } from './agent-failure.js';
import type { LlmConfig } from './llm-config.js';
import type { FailedCall, ModelStep } from './llm-entry.js';
import { type CallProgress, type ModelRequest, callModel, estimateInput } from './model-call.js';
import { ModelUnavailable } from './model-unavailable.js';
import { NO_USAGE, type ModelUsage, estimateTokens } from './model-usage.js';
import type { ModelMetrics } from './model-metrics.js';
import { type ProviderFailure, causeOf, explain } from './provider-failure.js';
import type { OpenModel } from './providers.js';
import { RequestTooLarge } from './request-too-large.js';
import type { CallRecorder, RecordedTry } from './recording/call-recorder.js';
import { hasToolFiles } from './tool-files.js';
import { ToolFilesRefused } from './tool-files-refused.js';
import type { ModelSpeech } from './turn-artifacts.js';

/** A run holds its slot during a pause. */
const MAX_PAUSE_MS = 30_000;
/** If a provider asks for a longer wait, the run fails. */
const MAX_RETRY_AFTER_MS = 60_000;
/** Estimated tokens of an answer for an agent without `maxOutputTokens`. */
const USUAL_ANSWER_TOKENS = 1_000;

/** Characters of an error that are kept with its call. */
const MAX_ERROR = 1_000;

/** Dependencies of model steps. */
export interface ModelStepPorts {
  budget: TokenBudget;
  metrics: ModelMetrics;
  logger: Logger;
  /** Keeps a call. A failed one is kept before it is retried or ends the turn. */
  onCall: (call: ModelStep | FailedCall, recorded: RecordedTry | undefined) => Promise<void>;
  /** Unset: the calls are not recorded. */
  recorder: CallRecorder | undefined;
  /** Maximum pause before the first retry, in ms. It doubles with each retry. */
  firstPauseMs: number;
}

/** Providers that OpenTelemetry calls by another name. */
const PROVIDER_NAMES: Readonly<Record<string, string>> = { google: 'gcp.gemini' };

/** The calls of one model in a turn, with retries, metrics and the tenant's token budget. */
export class ModelSteps {
  constructor(
    private readonly turn: Turn,
    private readonly config: LlmConfig,
    /** Its place among the models of the agent: 0 is `model`. */
    private readonly index: number,
    private readonly model: OpenModel,
    private readonly ports: ModelStepPorts,
  ) {}

  /**
   * Runs one step of the model. Yields its output as it arrives, and keeps its calls.
   * @param speech turns the output into pieces of the reply
   * @returns the answer, which is kept
   * @throws ModelUnavailable if the model is overloaded or out of reach; AgentFailure if the provider fails otherwise;
   * TokensExceeded if the tenant has no tokens left
   */
  async *step<Piece>(
    speech: ModelSpeech<Piece>,
    request: ModelRequest,
    signal: AbortSignal,
  ): AsyncGenerator<Piece, ModelStep> {
    for (let retries = 0; ; retries++) {
      const progress: CallProgress = { characters: 0, recorded: this.ports.recorder?.begin() };
      let step: ModelStep;
      try {
        step = yield* this.measured(request, speech, progress, signal);
        yield* speech.end();
      } catch (error) {
        if (progress.failed) await this.ports.onCall(progress.failed, progress.recorded);
        const cause = causeOf(error);
        if (signal.aborted || error instanceof TokensExceeded) throw error;
        if (cause instanceof AgentFailure) throw cause;
        const failure = explain(error, this.model);
        if (failure.mayBeFiles && hasToolFiles(request.messages)) throw new ToolFilesRefused(failure.reason);
        await this.pauseAfter(failure, retries, signal);
        speech.restart();
        continue;
      }
      await this.ports.onCall(step, progress.recorded);
      return step;
    }
  }

  private async *measured<Piece>(
    request: ModelRequest,
    speech: ModelSpeech<Piece>,
    progress: CallProgress,
    signal: AbortSignal,
  ): AsyncGenerator<Piece, ModelStep> {
    const { tenantId, runId } = this.turn;
    const { provider, name: model } = this.model;
    const { budget, metrics } = this.ports;
    const input = estimateInput(this.config, request);
    const outputTokens = request.maxOutputTokens ?? USUAL_ANSWER_TOKENS;
    const estimate = { model: this.config.model, inputTokens: input, outputTokens };
    const reservation = await budget.reserve(tenantId, runId, estimate, this.config.timeout, signal);
    const at = clock.date().toISOString();
    const began = performance.now();
    const span = this.startSpan(request);
    const elapsed = (): number => performance.now() - began;
    let outcome = 'stopped';
    let failed: string | undefined;
    try {
      const step = yield* callModel(this.model, this.config, request, speech, progress, signal);
      outcome = 'ok';
      this.logIgnored();
      span?.set({
        'gen_ai.response.finish_reasons': [step.finish],
        'baton.response.provider_finish': step.rawFinish,
      });
      return { ...step, ...this.place(), at, ms: Math.round(elapsed()) };
    } catch (error) {
      if (!signal.aborted) {
        const failure = explain(error, this.model);
        outcome = failure.kind;
        const cause = causeOf(error);
        failed = cause instanceof AgentFailure ? cause.message : failure.reason;
        if (progress.recorded) progress.recorded.complaint = failure.complaint;
        this.log('model call failed', { reason: failed, answer: failure.complaint });
      }
      throw error;
    } finally {
      const ms = elapsed();
      progress.usage ??= this.estimate(progress, input);
      if (outcome !== 'ok') span?.fail(outcome);
      span?.set(usageAttributes(progress));
      span?.end();
      const spent = { ...progress.usage, model: this.config.model };
      await budget.record(tenantId, runId, spent, reservation);
      metrics.call({
        provider,
        model,
        outcome,
        seconds: ms / 1000,
        ...(progress.firstWordMs !== undefined && { firstWordSeconds: progress.firstWordMs / 1000 }),
        tokens: progress.usage,
        traceparent: span?.traceparent,
      });
      if (failed !== undefined) {
        progress.failed = {
          kind: 'failed-call',
          at,
          ms: Math.round(ms),
          model: this.config.model,
          ...this.place(),
          usage: progress.usage,
          error: failed.slice(0, MAX_ERROR),
        };
      }
    }
  }

  private place(): { fallback?: number } {
    return this.index > 0 ? { fallback: this.index } : {};
  }

  private log(event: string, fields: object): void {
    const { tenantId, runId, task } = this.turn;
    const { provider, name: model } = this.model;
    this.ports.logger.warn(event, { tenantId, taskId: task.id, runId, provider, model, ...fields });
  }

  /** Logs the settings that the model ignored, once per turn. */
  private logIgnored(): void {
    const { ignored } = this.model;
    if (ignored.size === 0) return;
    this.log('model settings ignored', { settings: [...ignored].map((text) => text.slice(0, MAX_ERROR)) });
    ignored.clear();
  }

  /** The span of one call (OpenTelemetry, GenAI: inference). Messages and answers are not in it. */
  private startSpan({ maxOutputTokens }: ModelRequest): Span | undefined {
    const { name, provider } = this.model;
    const { temperature, topP } = this.config;
    return this.turn.span?.start(`chat ${name}`, {
      kind: 'client',
      attributes: {
        'gen_ai.operation.name': 'chat',
        'gen_ai.provider.name': PROVIDER_NAMES[provider] ?? provider,
        'gen_ai.request.model': name,
        'gen_ai.request.stream': true,
        'gen_ai.request.temperature': temperature,
        'gen_ai.request.top_p': topP,
        'gen_ai.request.max_tokens': maxOutputTokens,
        'gen_ai.conversation.id': this.turn.task.contextId,
      },
    });
  }

  /** Estimates the tokens of a call that broke off: providers charge for partial answers. */
  private estimate({ firstWordMs, characters }: CallProgress, input: number): ModelUsage {
    if (firstWordMs === undefined) return NO_USAGE;
    return { ...NO_USAGE, inputTokens: input, outputTokens: estimateTokens(characters), estimated: true };
  }

  /** Waits before a retry: at least as long as the provider asks, and longer each time. */
  private async pauseAfter(failure: ProviderFailure, retries: number, signal: AbortSignal): Promise<void> {
    const { reason, retryable, retryAfterMs = 0, kind, isTooLarge } = failure;
    if (isTooLarge) throw new RequestTooLarge(reason);
    if (!retryable) throw new AgentFailure(reason);
    if (retries >= this.config.retries) {
      throw new ModelUnavailable(retries === 0 ? reason : `${reason} It was tried ${retries + 1} times.`);
    }
    if (retryAfterMs > MAX_RETRY_AFTER_MS) {
      const seconds = Math.ceil(retryAfterMs / 1000);
      throw new ModelUnavailable(`${reason} The provider asks to wait for ${seconds} s.`);
    }
    const { provider, name: model } = this.model;
    this.ports.metrics.retry(provider, model, kind);
    const longest = Math.min(MAX_PAUSE_MS, this.ports.firstPauseMs * 2 ** retries);
    const pause = Math.max(retryAfterMs, retryPause(longest));
    await delay(pause, undefined, { signal });
  }
}

function usageAttributes({ usage = NO_USAGE, firstWordMs }: CallProgress): Attributes {
  return {
    'gen_ai.usage.input_tokens': usage.inputTokens,
    'gen_ai.usage.output_tokens': usage.outputTokens,
    'gen_ai.usage.cache_read.input_tokens': usage.cachedInputTokens,
    'gen_ai.response.time_to_first_chunk': firstWordMs === undefined ? undefined : firstWordMs / 1000,
  };
}
