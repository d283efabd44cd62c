import { Logger, Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import type { Turn } from '../../agent-runtime.js';
import { TokenBudget } from '../../token-budget.js';
import type { FailedCall, ModelStep } from './llm-entry.js';
import type { LlmConfig } from './llm-config.js';
import { type AgentModel, ModelChain } from './model-chain.js';
import type { ModelSteps } from './model-steps.js';
import { ModelMetrics } from './model-metrics.js';
import { CallRecorder, type RecordedTry } from './recording/call-recorder.js';

/** Bounds of a provider's answer. Some providers repeat the whole answer and the request at its end. */
const ANSWER_BOUNDS = {
  maxBytes: 16 * 1024 * 1024,
  maxTotalBytes: 64 * 1024 * 1024,
  json: true,
  limit: 'modelAnswer',
};

/**
 * Keeps a call in the journal of its task, with the JSON of its record, if there is one.
 * @returns the position of the entry
 */
export type KeepCall = (call: ModelStep | FailedCall, record?: string) => Promise<number>;

/** The only way to call a model: with the secrets of the tenant, metered, charged to its budgets, and recorded. */
@Injectable()
export class ModelCalls {
  /** Maximum pause before the first retry of a call, in ms. */
  firstPauseMs = 500;
  private readonly metrics: ModelMetrics;

  constructor(
    readonly budget: TokenBudget,
    metrics: Metrics,
    private readonly logger: Logger,
  ) {
    this.metrics = new ModelMetrics(metrics);
  }

  /**
   * Opens a model for calls of a turn.
   * @param keep called with each try of a call, before the next one
   * @param index place of the model among those of the agent
   * @throws AgentFailure if the tenant has no key for it
   */
  async open(turn: Turn, config: LlmConfig, keep: KeepCall, index = 0): Promise<ModelSteps> {
    // The AI SDK is large. A process loads it when a run needs it.
    const [providers, steps] = await Promise.all([import('./providers.js'), import('./model-steps.js')]);
    const { budget, metrics, logger, firstPauseMs } = this;
    const answers = turn.outbound.fetchWithin(ANSWER_BOUNDS);
    const mode = config.record ?? turn.records.byDefault;
    const recorder = mode === 'none' ? undefined : new CallRecorder(turn, mode, logger);
    const model = await providers.openModel(config, turn.secrets, answers, recorder?.onRequest);
    const onCall = async (call: ModelStep | FailedCall, recorded: RecordedTry | undefined): Promise<void> => {
      const record = recorded && recorder?.recordOf(call, recorded);
      const position = await keep(call, record?.isKept === true ? record.json : undefined);
      if (record?.isKept === false) turn.records.hold({ position, json: record.json });
    };
    return new steps.ModelSteps(turn, config, index, model, {
      budget,
      metrics,
      logger,
      firstPauseMs,
      onCall,
      recorder,
    });
  }

  /**
   * Opens the models of an agent: `model`, and those of `fallback` when they are needed.
   * @throws AgentFailure if the tenant has no key for the first
   */
  async openAll(turn: Turn, config: LlmConfig, keep: KeepCall): Promise<ModelChain> {
    const { metrics, logger } = this;
    const open = (model: AgentModel) => this.open(turn, model.config, keep, model.index);
    const chain = new ModelChain(turn, config, { open, metrics, logger });
    await chain.open();
    return chain;
  }
}
