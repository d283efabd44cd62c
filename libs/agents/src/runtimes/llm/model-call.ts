import {
  type FinishReason,
  type LanguageModelUsage,
  type ModelMessage,
  type TextStreamPart,
  type ToolSet,
  jsonSchema,
  stepCountIs,
  streamText,
  tool,
} from 'ai';
import type { AgentOutput } from '../../agent-runtime.js';
import type { LlmConfig } from './llm-config.js';
import { boundedAnswer, grouped, Watchdog } from './answer-stream.js';
import type { FailedCall, ModelStep } from './conversation.js';
import { BrokenAnswer } from './agent-failure.js';
import type { OpenModel } from './providers.js';
import type { Speech } from './turn-artifacts.js';
import type { AgentTool } from './tools/agent-tool.js';
import { type Usage, estimateTokens, usageOf } from './model-usage.js';

/** Pieces of text that arrive within this time become one event. */
const GROUP_MS = 50;

/** The request to a model in one step. */
export interface ModelRequest {
  messages: ModelMessage[];
  tools: readonly AgentTool[];
  maxOutputTokens: number | undefined;
}

/** Progress of one try of a call. It is kept if the try fails. */
export interface CallProgress {
  /** Time to the first token, in ms. Undefined before it. */
  firstWordMs?: number;
  /** Characters of the output so far. */
  characters: number;
  usage?: Usage;
  /** Set when the call has failed. Unset if it was stopped. */
  failed?: FailedCall;
}

type Part = TextStreamPart<ToolSet>;
type Finish = Extract<Part, { type: 'finish' }>;
type Words = Extract<Part, { type: 'text-delta' | 'reasoning-delta' }>;

const WORDS = new Set<Part['type']>([
  'text-delta',
  'reasoning-delta',
  'tool-input-start',
  'tool-input-delta',
]);
const isWord = ({ type }: Part): boolean => WORDS.has(type) || type === 'tool-call';

/**
 * Calls the model once. Yields its output as it arrives, and returns the complete step. Rejects with the provider's
 * error, or with ModelTimeout.
 */
export async function* callModel(
  open: OpenModel,
  config: LlmConfig,
  request: ModelRequest,
  speech: Speech,
  progress: CallProgress,
  stop: AbortSignal,
): AsyncGenerator<AgentOutput, ModelStep> {
  const watchdog = new Watchdog(config, stop);
  try {
    const result = streamText({ ...callOptions(open, config, request), abortSignal: watchdog.signal });
    const finish = yield* relayAnswer(
      boundedAnswer(watchdog.over(result.fullStream, isWord)),
      config,
      speech,
      progress,
    );
    progress.usage = usageOf(finish?.totalUsage, {
      inputTokens: estimateInput(config, request),
      outputTokens: estimateTokens(progress.characters),
    });
    const reason = wholeAnswer(finish);
    const { messages } = await result.response;
    const said = messages.find((message) => message.role === 'assistant');
    const message = said ?? { role: 'assistant' as const, content: '' };
    return { kind: 'step', message, finish: reason, usage: progress.usage, model: config.model };
  } finally {
    watchdog.end();
  }
}

/** Yields the model's output as it arrives. @returns the `finish` part, if there was one */
async function* relayAnswer(
  parts: AsyncIterable<Part>,
  config: LlmConfig,
  speech: Speech,
  progress: CallProgress,
): AsyncGenerator<AgentOutput, Finish | undefined> {
  const began = performance.now();
  let finish: Finish | undefined;
  for await (const group of grouped(parts, GROUP_MS)) {
    const failure = group.find((part) => part.type === 'error' || part.type === 'abort');
    finish ??= group.find((part) => part.type === 'finish');
    if (group.some(isWord)) progress.firstWordMs ??= performance.now() - began;
    yield* say(group, speech, config, progress, finish !== undefined);
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
    ...(prompt !== undefined && { system: prompt }),
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(request.maxOutputTokens !== undefined && { maxOutputTokens: request.maxOutputTokens }),
    // The SDK runs one step and one try. The runtime journals each step and does the retries.
    stopWhen: stepCountIs(1),
    maxRetries: 0,
    onError: () => undefined,
  };
}

/** Estimated input tokens of a request. A file counts as a thousand. */
export function estimateInput({ prompt = '' }: LlmConfig, { messages, tools }: ModelRequest): number {
  let files = 0;
  const text = JSON.stringify(
    [messages, tools.map(({ name, description, inputSchema }) => [name, description, inputSchema])],
    (_, value: unknown) => {
      const isBytes = ArrayBuffer.isView(value);
      if (isBytes) files += 1;
      return isBytes ? undefined : value;
    },
  );
  return estimateTokens(prompt.length + text.length) + files * 1000;
}

/** Yields one chunk for all reasoning of a group, and one for all its text. */
function* say(
  group: readonly Part[],
  speech: Speech,
  { output }: LlmConfig,
  progress: CallProgress,
  isOver: boolean,
): Generator<AgentOutput> {
  const words = group.filter(
    (part): part is Words => part.type === 'text-delta' || part.type === 'reasoning-delta',
  );
  for (const type of ['reasoning-delta', 'text-delta'] as const) {
    const text = words.map((part) => (part.type === type ? part.text : '')).join('');
    progress.characters += text.length;
    if (text === '') continue;
    // JSON for an output schema becomes a data part at the end of the turn.
    if (type === 'reasoning-delta') yield speech.say('reasoning', text, isOver);
    else if (!output) yield speech.say('reply', text, isOver);
  }
}

/** A stream that a gateway cut off may look complete. Only a complete answer has a reason why it ended. */
function wholeAnswer(finish: Finish | undefined): FinishReason {
  if (!finish || finish.finishReason === 'error') throw new BrokenAnswer();
  const { finishReason, rawFinishReason, totalUsage } = finish;
  if (finishReason === 'other' && rawFinishReason === undefined && !isKnown(totalUsage))
    throw new BrokenAnswer();
  return finishReason;
}

const isKnown = ({ outputTokens }: LanguageModelUsage): boolean => outputTokens !== undefined;

function toolSet(tools: readonly AgentTool[]): ToolSet | undefined {
  if (tools.length === 0) return undefined;
  const entries = tools.map(({ name, description, inputSchema }) => [
    name,
    tool({ description, inputSchema: jsonSchema(inputSchema) }),
  ]);
  return Object.fromEntries(entries) as ToolSet;
}
