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
import type { AgentOutput } from '../../runtime.js';
import type { LlmConfig } from './config.js';
import { boundedAnswer, grouped, Watchdog } from './answer-stream.js';
import type { ModelStep } from './journal-entry.js';
import { BrokenAnswer } from './provider-failure.js';
import type { OpenModel } from './providers.js';
import type { Speech } from './speech.js';
import type { AgentTool } from './tools/agent-tool.js';
import { type Usage, estimateTokens, usageOf } from './usage.js';

/** Small pieces of text that come within this time are one event. */
const GROUP_MS = 50;

/** What a model is asked in one step. */
export interface ModelRequest {
  messages: ModelMessage[];
  tools: readonly AgentTool[];
  maxOutputTokens: number | undefined;
}

/** What one try of a call has done so far, also when it fails. */
export interface CallProgress {
  /** Time to the first word, in ms; undefined before it. */
  firstWordMs?: number;
  /** Characters of what was said. */
  characters: number;
  usage?: Usage;
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
 * Call the model once: what it says is yielded, what has come of it is returned. Rejects with whatever went wrong
 * with the provider, or with ModelTimeout.
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

/** Yields what the model says as it comes. @returns the end of its answer, if there was one */
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
    // One step, one try: the loop journals each step, and says when another try begins.
    stopWhen: stepCountIs(1),
    maxRetries: 0,
    onError: () => undefined,
  };
}

/** Tokens of what the model is to read, by estimate; a file counts as a thousand. */
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

/** Adjacent pieces of the same kind become one chunk. */
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
    // JSON of the agent's schema becomes a data part once it is whole.
    if (type === 'reasoning-delta') yield speech.say('reasoning', text, isOver);
    else if (!output) yield speech.say('reply', text, isOver);
  }
}

/** A stream may end as if it were over when a gateway has cut it off: only a model says why it has ended. */
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
