import { type ComputePool, schemaExcess } from '@baton/compute';
import { messageOf } from '@baton/telemetry';
import type { ModelMessage } from 'ai';
import { z } from 'zod';
import type { Turn } from '../../agent-runtime.js';
import { CapReached, type CapQuestion } from '../../cap-reached.js';
import { TokensExceeded } from '../../tokens-exceeded.js';
import { AgentFailure } from '../llm/agent-failure.js';
import { wrongCallsFailure } from '../llm/wrong-calls.js';
import { type FailedCall, type ModelStep, textOfStep } from '../llm/llm-entry.js';
import { llmConfig, type LlmConfig, splitModel } from '../llm/llm-config.js';
import type { ModelRequest } from '../llm/model-call.js';
import type { ModelCalls } from '../llm/model-calls.js';
import type { AgentModel } from '../llm/model-chain.js';
import type { ModelUsage } from '../llm/model-usage.js';
import { SchemaChecks } from '../llm/schema-checks.js';
import { answerCorrection, structuredAnswer } from '../llm/structured-answer.js';
import type { ModelSpeech } from '../llm/turn-artifacts.js';
import type { ModelCallAnswer, ModelPiece } from './model-protocol.js';
import { STEP_LIMITS, type StepFailure, type StepReply } from './step-protocol.js';

/** A model call, for its step. */
export interface ModelCallContext {
  signal: AbortSignal;
  /** Tokens of the calls of the run so far. */
  spent: () => ModelUsage;
  /** Stores a try of the call. @returns its position in the journal */
  keep: (call: ModelStep | FailedCall, record?: string) => Promise<number>;
  /** Called with the text as it arrives. */
  onPiece?: (piece: ModelPiece) => void;
}

/** Settings of an llm agent about its model. The code of the agent does itself what the others are for. */
const OWN_SETTINGS = new Set([
  'model',
  'api',
  'baseUrl',
  'key',
  'prompt',
  'temperature',
  'topP',
  'maxOutputTokens',
  'reasoning',
  'providerOptions',
  'promptCache',
  'fallback',
  'budget',
  'timeout',
  'firstToken',
  'stall',
  'retries',
  'record',
]);

const schema = z.record(z.string(), z.unknown(), 'must be a JSON schema').superRefine((value, context) => {
  const excess = schemaExcess(value);
  if (excess) context.addIssue({ code: 'custom', message: `${excess}: make it smaller` });
});

/** Base64 has no colon. A URL would be fetched past the lists of the tenant. */
const isBytes = (data: unknown): boolean => typeof data === 'string' && !data.includes(':');

const part = z
  .looseObject({
    type: z.enum(['text', 'reasoning', 'file', 'tool-call', 'tool-result'], 'is no part of a message'),
  })
  .refine(
    ({ type, data }) => type !== 'file' || isBytes(data),
    'must be a file with its bytes in Base64 as data, not with a URL',
  );

const request = z.strictObject({
  settings: z.record(z.string(), z.unknown(), 'must be an object with the settings of the model'),
  messages: z
    .array(
      z.looseObject({
        role: z.enum(['system', 'user', 'assistant', 'tool'], 'must be system, user, assistant or tool'),
        content: z.union([z.string(), z.array(part)], 'must be a text or a list of parts'),
      }),
    )
    .min(1, 'must have a message'),
  tools: z
    .array(
      z.strictObject({
        name: z
          .string()
          .regex(/^[A-Za-z0-9_-]{1,64}$/, 'must be 1 to 64 letters, digits, underscores or hyphens'),
        description: z.string().prefault(''),
        inputSchema: schema,
      }),
    )
    .max(500)
    .prefault([]),
  toolChoice: z
    .union([
      z.enum(['auto', 'none', 'required']),
      z.strictObject({ type: z.literal('tool'), toolName: z.string() }),
    ])
    .optional(),
  schema: schema.optional(),
  isChecked: z.literal(true).optional(),
  parameters: z
    .strictObject({
      temperature: z.number().optional(),
      topP: z.number().optional(),
      maxOutputTokens: z.int().min(1).optional(),
      topK: z.number().optional(),
      presencePenalty: z.number().optional(),
      frequencyPenalty: z.number().optional(),
      stopSequences: z.array(z.string()).max(100).optional(),
      seed: z.int().optional(),
      providerOptions: z.record(z.string(), z.record(z.string(), z.unknown())).optional(),
    })
    .prefault({}),
});
type CheckedRequest = z.output<typeof request>;

/** The model calls of the agents in code of a worker: the key of the provider stays here. */
export class TurnModels {
  private inFlight = 0;
  private bytes = 0;
  private readonly queue: (() => void)[] = [];

  constructor(
    private readonly models: ModelCalls,
    private readonly pool: ComputePool,
  ) {}

  /** A view of the models for one turn: it limits the calls that the turn makes at a time. */
  ofTurn(): TurnModels {
    return new TurnModels(this.models, this.pool);
  }

  /** Lets the tree of a turn's task spend more than a cap, once for each `id`. */
  async allow({ tenantId, runId }: Turn, cap: CapQuestion, id: string, signal: AbortSignal): Promise<void> {
    await this.models.budget.allow(tenantId, runId, cap, id, signal);
  }

  /**
   * Makes a call, with the retries of its settings. Rejects only if the turn cannot continue.
   * @param json of a `ModelCallRequest`
   * @returns `cap`: a person is asked whether the task may spend more
   */
  async call(turn: Turn, json: string, context: ModelCallContext): Promise<StepReply | { cap: CapQuestion }> {
    const bytes = Buffer.byteLength(json);
    if (this.bytes + bytes > STEP_LIMITS.modelWaitingBytes) {
      return failure(
        `the requests of calls of models have more than ${STEP_LIMITS.modelWaitingBytes} bytes at a time`,
      );
    }
    this.bytes += bytes;
    if (this.inFlight >= STEP_LIMITS.modelCalls) await new Promise<void>((done) => this.queue.push(done));
    this.inFlight += 1;
    try {
      const asked = read(json);
      return await this.answer(turn, asked, await this.callModel(turn, asked, context));
    } catch (error) {
      if (!isFailure(error) || context.signal.aborted) throw error;
      if (error instanceof CapReached) return { cap: error.question };
      return failure(error.message, error.name === 'AgentFailure' ? 'ModelError' : error.name);
    } finally {
      this.inFlight -= 1;
      this.bytes -= bytes;
      this.queue.shift()?.();
    }
  }

  /** The reply for a call that an earlier attempt has made. */
  async check(turn: Turn, json: string, step: ModelStep): Promise<StepReply> {
    try {
      return await this.answer(turn, read(json), step);
    } catch (error) {
      if (!isFailure(error)) throw error;
      return failure(error.message);
    }
  }

  private async callModel(turn: Turn, asked: CheckedRequest, context: ModelCallContext): Promise<ModelStep> {
    const { signal, keep, spent, onPiece } = context;
    const { roomInBudget } = await import('../llm/room-in-budget.js');
    const config = configOf(asked);
    const { secrets } = turn;
    let kept: ModelStep | undefined;
    const models = await this.models.openAll(turn, config, async (call, record) => {
      // What a provider quotes of its key must not reach the process.
      const clean = bounded(secrets.redactor.value(call));
      if (clean.kind === 'step') kept = clean;
      return keep(clean, record);
    });
    const { topK, presencePenalty, frequencyPenalty, stopSequences, seed } = asked.parameters;
    const parameters = {
      ...(topK !== undefined && { topK }),
      ...(presencePenalty !== undefined && { presencePenalty }),
      ...(frequencyPenalty !== undefined && { frequencyPenalty }),
      ...(stopSequences && { stopSequences }),
      ...(seed !== undefined && { seed }),
      ...(asked.toolChoice && { toolChoice: asked.toolChoice }),
    };
    const messages = asked.messages.filter(({ role }) => role !== 'system') as unknown as ModelMessage[];
    const sent = { messages, tools: asked.tools, maxOutputTokens: undefined, parameters };
    const requestOf = (model: AgentModel): Promise<ModelRequest> =>
      Promise.resolve({ ...sent, maxOutputTokens: roomInBudget(model.config, spent(), sent) });
    const speech = new ProcessSpeech((text) => secrets.redactor.split(text));
    for await (const piece of models.step(speech, undefined, requestOf, signal)) onPiece?.(piece);
    if (!kept) throw new AgentFailure(TOO_LARGE);
    return kept;
  }

  private async answer({ tenantId }: Turn, asked: CheckedRequest, step: ModelStep): Promise<StepReply> {
    if (step.wrongCalls) return failure(wrongCallsFailure(step.wrongCalls), 'ModelError');
    const answer = modelAnswer(step);
    if (!asked.isChecked || !asked.schema || step.finish !== 'stop')
      return { result: JSON.stringify(answer) };
    const checks = new SchemaChecks(this.pool, tenantId);
    const { schema: wanted } = asked;
    const found = await structuredAnswer(textOfStep(step), (text) => checks.answer(wanted, text));
    const wrong = 'wrong' in found && { problem: found.wrong, correction: answerCorrection(found.wrong) };
    return { result: JSON.stringify({ ...answer, ...(wrong && { wrong }) }) };
  }
}

/** The answer of a model call, as its process gets it. */
export const modelAnswer = ({ message, finish, rawFinish, usage, model }: ModelStep): ModelCallAnswer => ({
  message: message as ModelCallAnswer['message'],
  finish,
  ...(rawFinish !== undefined && { rawFinish }),
  usage,
  model,
});

/** Pieces of a text for the process of an agent, without secrets. */
class ProcessSpeech implements ModelSpeech<ModelPiece> {
  private readonly held = { reply: '', reasoning: '' };
  private hasSpoken = false;

  constructor(private readonly clean: (text: string) => { ready: string; held: string }) {}

  say(kind: ModelPiece['kind'], text: string): ModelPiece | undefined {
    const { ready, held } = this.clean(this.held[kind] + text);
    this.held[kind] = held;
    if (ready === '') return undefined;
    this.hasSpoken = true;
    return { kind, text: ready };
  }

  /** The code has read the text already, and cannot forget it. */
  restart(): void {
    if (this.hasSpoken)
      throw new AgentFailure(
        "The model's answer broke off. Its beginning was streamed, so the call is not made again.",
      );
    this.held.reply = this.held.reasoning = '';
  }

  *end(): Generator<ModelPiece> {
    // Beginnings of secrets are no secrets: no text follows.
    for (const kind of ['reasoning', 'reply'] as const)
      if (this.held[kind] !== '') yield { kind, text: this.held[kind] };
  }
}

/** Throws AgentFailure that names the field. */
function read(json: string): CheckedRequest {
  // oxlint-disable-next-line no-restricted-properties -- bounded, and of the operator's code
  const { data, error } = request.safeParse(JSON.parse(json || '{}'));
  if (data) return data;
  const [issue] = error.issues;
  throw new AgentFailure(`${issue?.path.join('.') ?? ''}: ${issue?.message ?? 'is not valid'}`);
}

/** The settings of one call: those of its model, with those of the call in their place. Throws AgentFailure that names the field. */
function configOf({ settings, messages, schema: wanted, parameters }: CheckedRequest): LlmConfig {
  const other = Object.keys(settings).find((name) => !OWN_SETTINGS.has(name));
  if (other !== undefined) {
    throw new AgentFailure(`the settings of the model: ${other} is no setting of a model in code`);
  }
  let config: LlmConfig;
  try {
    config = llmConfig(withOptions(settings, parameters.providerOptions));
  } catch (error) {
    throw new AgentFailure(`the settings of the model: ${messageOf(error)}`);
  }
  const instructions = messages.flatMap(({ role, content }) =>
    role === 'system' && typeof content === 'string' ? [content] : [],
  );
  const prompt = [config.prompt ?? '', ...instructions].filter((text) => text !== '').join('\n\n');
  const { temperature, topP, maxOutputTokens } = parameters;
  return {
    ...config,
    prompt,
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(wanted && { output: { schema: wanted } }),
  };
}

/** Options may be for several providers. A call takes those of its own provider. */
function withOptions(
  settings: Record<string, unknown>,
  options: CheckedRequest['parameters']['providerOptions'],
): Record<string, unknown> {
  const { provider } = splitModel(String(settings.model));
  const given = options?.[provider];
  if (!given) return settings;
  const { providerOptions: own } = settings as { providerOptions?: Record<string, object> };
  return { ...settings, providerOptions: { ...own, [provider]: { ...own?.[provider], ...given } } };
}

const TOO_LARGE = `The model's answer has more than ${STEP_LIMITS.resultBytes} bytes: set maxOutputTokens.`;

/** An answer that is too large for the journal is a failure. Its tokens were used. */
function bounded(call: ModelStep | FailedCall): ModelStep | FailedCall {
  if (call.kind === 'failed-call' || Buffer.byteLength(JSON.stringify(call)) <= STEP_LIMITS.resultBytes)
    return call;
  const { at, ms, usage, model } = call;
  return {
    kind: 'failed-call',
    ...(at !== undefined && { at }),
    ...(ms !== undefined && { ms }),
    usage,
    model,
    error: TOO_LARGE,
  };
}

/** Whether an error is for the author of the agent: its code can catch it. */
const isFailure = (error: unknown): error is Error =>
  error instanceof AgentFailure || error instanceof TokensExceeded;

const failure = (message: string, name = 'ModelError'): { failed: StepFailure } => ({
  failed: { name, message },
});
