import {
  type AssistantModelMessage,
  type ModelMessage,
  type ToolSet,
  jsonSchema,
  stepCountIs,
  streamText,
  tool,
} from 'ai';
import { apiOf, type LlmConfig } from './llm-config.js';
import { AnswerCalls, type AnswerPart } from './answer-calls.js';
import { withMemory } from './chat-memory.js';
import { boundedAnswer, grouped } from './answer-stream.js';
import { CallTimeouts } from './call-timeouts.js';
import type { FailedCall, ModelStep } from './llm-entry.js';
import { BrokenAnswer } from './broken-answer.js';
import { endingOf, finishOf, MAX_REASON } from './finish-reason.js';
import type { OpenModel } from './providers.js';
import type { RecordedTry } from './recording/call-recorder.js';
import type { ModelSpeech } from './turn-artifacts.js';
import { isFileItem, withoutFile } from './tool-files.js';
import type { AgentTool } from './tools/tool-sources.js';
import { type ModelUsage, estimateTokens, usageOf } from './model-usage.js';

/** Pieces of text that arrive within this time become one event. */
const GROUP_MS = 50;

/** The request to a model in one step. */
export interface ModelRequest {
  messages: ModelMessage[];
  tools: readonly OfferedTool[];
  maxOutputTokens: number | undefined;
  /** Settings that only a call of an agent in code may have. */
  parameters?: CallParameters;
}

/** A tool as it is sent to the model. */
export type OfferedTool = Pick<AgentTool, 'name' | 'description' | 'inputSchema'>;

/** Parameters of one call beside the settings of its agent. */
export interface CallParameters {
  topK?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  stopSequences?: string[];
  seed?: number;
  toolChoice?: 'auto' | 'none' | 'required' | { type: 'tool'; toolName: string };
}

/** Progress of one try of a call. It is kept if the try fails. */
export interface CallProgress {
  /** Time to the first token, in ms. Undefined before it. */
  firstWordMs?: number;
  /** Characters of the output so far. */
  characters: number;
  usage?: ModelUsage;
  /** The record of the try. Unset: nothing. */
  recorded?: RecordedTry | undefined;
  /** Set when the call has failed. Unset if it was stopped. */
  failed?: FailedCall;
}

type FinishPart = Extract<AnswerPart, { type: 'finish' }>;
type TextPart = Extract<AnswerPart, { type: 'text-delta' | 'reasoning-delta' }>;

const WORDS = new Set<AnswerPart['type']>([
  'text-delta',
  'reasoning-delta',
  'tool-input-start',
  'tool-input-delta',
]);
const isWord = ({ type }: AnswerPart): boolean => WORDS.has(type) || type === 'tool-call';

/**
 * Calls the model once. Yields its output as it arrives, and returns the complete step. A step has tool calls only
 * if the provider has marked the answer as complete, and all its calls are. Rejects with the provider's error, BrokenAnswer
 * or ModelTimeout.
 */
export async function* callModel<Piece>(
  open: OpenModel,
  config: LlmConfig,
  request: ModelRequest,
  speech: ModelSpeech<Piece>,
  progress: CallProgress,
  stop: AbortSignal,
): AsyncGenerator<Piece, ModelStep> {
  const timeouts = new CallTimeouts(config, stop);
  try {
    const result = streamText({ ...callOptions(open, config, request), abortSignal: timeouts.signal });
    const calls = new AnswerCalls();
    const parts = boundedAnswer(timeouts.over(result.fullStream, isWord));
    const finish = yield* relayAnswer(parts, speech, progress, calls);
    progress.usage = usageOf(finish?.totalUsage, {
      inputTokens: estimateInput(config, request),
      outputTokens: estimateTokens(progress.characters),
    });
    const reasons = reasonsOf(finish, calls);
    const { messages } = await result.response;
    const answer = messages.find((message) => message.role === 'assistant');
    const step = { kind: 'step' as const, ...reasons, usage: progress.usage, model: config.model };
    const message = withMemory(answer ?? { role: 'assistant', content: '' }, await result.providerMetadata);
    const ending = endingOf(reasons);
    const wrongCalls = ending === 'unreadable-call' ? [UNREADABLE] : ending === 'whole' ? calls.wrong() : [];
    if (ending === 'whole' && wrongCalls.length === 0) return { ...step, message };
    return {
      ...step,
      message: withoutCalls(message),
      notMade: calls.tools(),
      ...(wrongCalls.length > 0 && { wrongCalls }),
    };
  } finally {
    timeouts.end();
  }
}

/** Yields the model's output as it arrives. @returns the `finish` part, if there was one */
async function* relayAnswer<Piece>(
  parts: AsyncIterable<AnswerPart>,
  speech: ModelSpeech<Piece>,
  progress: CallProgress,
  calls: AnswerCalls,
): AsyncGenerator<Piece, FinishPart | undefined> {
  const began = performance.now();
  let finish: FinishPart | undefined;
  for await (const group of grouped(parts, GROUP_MS)) {
    const failure = group.find((part) => part.type === 'error' || part.type === 'abort');
    finish ??= group.find((part) => part.type === 'finish');
    for (const part of group) {
      calls.addPart(part);
      progress.recorded?.answer.addPart(part);
      if (part.type === 'tool-input-delta') progress.characters += part.delta.length;
    }
    if (group.some(isWord)) progress.firstWordMs ??= performance.now() - began;
    yield* speakGroup(group, speech, progress, finish !== undefined);
    if (failure) throw failure.type === 'error' ? failure.error : new BrokenAnswer();
  }
  return finish;
}

function callOptions({ model, options }: OpenModel, config: LlmConfig, request: ModelRequest) {
  const { prompt, temperature, topP } = config;
  return {
    model,
    messages: request.messages,
    tools: toolSet(request.tools),
    providerOptions: options,
    ...request.parameters,
    ...(prompt !== undefined && prompt.trim() !== '' && { system: prompt }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(request.maxOutputTokens !== undefined && { maxOutputTokens: request.maxOutputTokens }),
    // The SDK runs one step and one try. The runtime journals each step and does the retries.
    stopWhen: stepCountIs(1),
    maxRetries: 0,
    // AnswerCalls compares the calls with the chunks. With other interfaces, the AI SDK loses no pieces.
    includeRawChunks: request.tools.length > 0 && hasChatCompletions(config),
    onError: () => undefined,
  };
}

const hasChatCompletions = (config: LlmConfig): boolean => apiOf(config) === 'chat';

/** Estimated input tokens of a request. A file counts as a thousand. */
export function estimateInput({ prompt = '' }: LlmConfig, { messages, tools }: ModelRequest): number {
  let files = 0;
  const text = JSON.stringify(
    [messages, tools.map(({ name, description, inputSchema }) => [name, description, inputSchema])],
    (_, value: unknown) => {
      const isBytes = ArrayBuffer.isView(value);
      if (isBytes || isFileItem(value)) files += 1;
      return isBytes ? undefined : withoutFile(value);
    },
  );
  return estimateTokens(prompt.length + text.length) + files * 1000;
}

/** Yields one chunk for all reasoning of a group, and one for all its text. */
function* speakGroup<Piece>(
  group: readonly AnswerPart[],
  speech: ModelSpeech<Piece>,
  progress: CallProgress,
  isOver: boolean,
): Generator<Piece> {
  const words = group.filter(
    (part): part is TextPart => part.type === 'text-delta' || part.type === 'reasoning-delta',
  );
  for (const type of ['reasoning-delta', 'text-delta'] as const) {
    const text = words.map((part) => (part.type === type ? part.text : '')).join('');
    progress.characters += text.length;
    if (text === '') continue;
    const piece = speech.say(type === 'reasoning-delta' ? 'reasoning' : 'reply', text, isOver);
    if (piece !== undefined) yield piece;
  }
}

/**
 * Why the answer ended. A stream that a gateway cut off may seem complete: only a complete answer has a reason. Throws
 * BrokenAnswer if there is none, and if another try may give a whole answer.
 */
function reasonsOf(finish: FinishPart | undefined, calls: AnswerCalls) {
  if (!finish) throw new BrokenAnswer();
  const rawFinish = finish.rawFinishReason?.trim().slice(0, MAX_REASON) || undefined;
  const ending = endingOf({ finish: finish.finishReason, rawFinish });
  if (ending === 'broken') throw new BrokenAnswer();
  if (ending === 'failed') throw new BrokenAnswer(rawFinish && `its reason is "${rawFinish}"`);
  if (ending === 'whole') calls.assertEnded();
  return {
    finish: finishOf(ending, calls.tools().length > 0),
    ...(rawFinish !== undefined && { rawFinish }),
  };
}

/** Stands for a call that the provider itself could not read. The provider does not show it. */
const UNREADABLE = { tool: '', received: '', wrong: 'the provider could not read the call' };

/** The rest of an answer whose calls are not made. */
function withoutCalls(message: AssistantModelMessage): AssistantModelMessage {
  if (typeof message.content === 'string') return message;
  return { ...message, content: message.content.filter(({ type }) => type !== 'tool-call') };
}

function toolSet(tools: readonly OfferedTool[]): ToolSet | undefined {
  if (tools.length === 0) return undefined;
  const entries = tools.map(({ name, description, inputSchema }) => [
    name,
    tool({ description, inputSchema: jsonSchema(inputSchema) }),
  ]);
  return Object.fromEntries(entries) as ToolSet;
}
