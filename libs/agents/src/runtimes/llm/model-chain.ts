import type { Logger } from '@baton/telemetry';
import type { Turn } from '../../agent-runtime.js';
import { AgentFailure } from './agent-failure.js';
import type { ModelStep } from './llm-entry.js';
import { type LlmConfig, modelsOf, splitModel } from './llm-config.js';
import type { ModelRequest } from './model-call.js';
import type { ModelSteps } from './model-steps.js';
import { ModelUnavailable } from './model-unavailable.js';
import type { ModelMetrics } from './model-metrics.js';
import { RequestTooLarge } from './request-too-large.js';
import { ToolFilesRefused } from './tool-files-refused.js';
import type { ModelSpeech } from './turn-artifacts.js';

/** A model of an agent. */
export interface AgentModel {
  /** The settings of the agent with those of this model. */
  config: LlmConfig;
  /** 0: `model` of the settings; then those of `fallback`. */
  index: number;
}

interface ModelChainPorts {
  /** Rejects with AgentFailure if the model cannot be used, for instance without a key. */
  open: (model: AgentModel) => Promise<ModelSteps>;
  metrics: ModelMetrics;
  logger: Logger;
}

type AnsweredBy = Pick<ModelStep, 'model' | 'fallback'>;

/**
 * The models of an agent. If one is overloaded or out of reach, the next one is asked in the same step. A turn stays with
 * the model that has answered last: its cache has the conversation, and the model before may still be overloaded.
 */
export class ModelChain {
  private readonly models: AgentModel[];
  private readonly opened = new Map<number, Promise<ModelSteps>>();

  constructor(
    private readonly turn: Turn,
    config: LlmConfig,
    private readonly ports: ModelChainPorts,
  ) {
    this.models = modelsOf(config).map((settings, index) => ({ config: settings, index }));
  }

  /** Opens the first model. @throws AgentFailure if it cannot be used */
  async open(): Promise<void> {
    await this.stepsOf(0);
  }

  /**
   * Runs one step. Yields the output of the model as it arrives, and keeps its calls.
   * @param speech turns the output into pieces of the reply
   * @param last the last step of this turn: its model is asked first
   * @returns the answer, which is kept
   * @throws AgentFailure if no model answers; TokensExceeded if the tenant has no tokens left
   */
  async *step<Piece>(
    speech: ModelSpeech<Piece>,
    last: AnsweredBy | undefined,
    requestOf: (model: AgentModel) => Promise<ModelRequest>,
    signal: AbortSignal,
  ): AsyncGenerator<Piece, ModelStep> {
    const failures: AgentFailure[] = [];
    for (const model of this.from(last)) {
      if (failures.length > 0) this.report(model, failures);
      let steps: ModelSteps | undefined;
      try {
        steps = await this.stepsOf(model.index);
        return yield* steps.step(speech, await requestOf(model), signal);
      } catch (error) {
        if (!(error instanceof AgentFailure)) throw error;
        failures.push(error);
        if (steps && !(error instanceof ModelUnavailable)) break;
        speech.restart();
      }
    }
    throw oneOf(failures);
  }

  /** The models in the order in which they are asked. */
  private from(last: AnsweredBy | undefined): AgentModel[] {
    const index = last?.fallback ?? 0;
    const first = this.models[index]?.config.model === last?.model ? index : 0;
    return [...this.models.slice(first), ...this.models.slice(0, first)];
  }

  private stepsOf(index: number): Promise<ModelSteps> {
    const model = this.models[index];
    if (!model) throw new Error(`The agent has no model ${index}`);
    const known = this.opened.get(index);
    const steps = known ?? this.ports.open(model);
    this.opened.set(index, steps);
    return steps;
  }

  private report({ config }: AgentModel, failures: readonly AgentFailure[]): void {
    const { tenantId, runId, task } = this.turn;
    const { provider, name } = splitModel(config.model);
    this.ports.metrics.fallback(provider, name);
    const reason = failures.at(-1)?.message;
    this.ports.logger.warn('fallback model asked', {
      tenantId,
      taskId: task.id,
      runId,
      provider,
      model: name,
      reason,
    });
  }
}

/** One failure for the caller, which names each model that did not answer. */
function oneOf(failures: readonly AgentFailure[]): AgentFailure {
  const [first, ...others] = failures;
  const last = failures.at(-1);
  // A shorter conversation, or one without files, may be taken.
  if (last instanceof RequestTooLarge || last instanceof ToolFilesRefused) return last;
  if (!first || others.length === 0) return first ?? new AgentFailure('The agent has no model.');
  const reasons = [first, ...others].map(({ message }) => message);
  return new AgentFailure(`No model of the agent has answered. ${reasons.join(' ')}`, { cause: first });
}
