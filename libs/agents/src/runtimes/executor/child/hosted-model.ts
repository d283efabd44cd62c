import type {
  ModelCallAnswer,
  ModelCallRequest,
  ModelChatMessage,
  ModelPart,
  ModelPiece,
} from '../model-protocol.js';
import { withoutFence } from '../../llm/without-fence.js';
import type {
  CodeModel,
  ModelAnswer,
  ModelPrompt,
  CodeModelSettings,
  ModelStreaming,
  ModelTool,
} from './steps.js';

/** Calls that correct an answer which is not of its schema. */
const MAX_CORRECTIONS = 2;

/** Makes one model call, as a step. */
export type CallModel = (
  name: string,
  request: ModelCallRequest,
  onPiece?: (piece: ModelPiece) => void,
) => Promise<ModelCallAnswer>;

/**
 * A model for the code of an agent. It is a `LanguageModelV3` of the AI SDK, too: `generateText` and the like take it as it is. The calls
 * are steps.
 */
export class HostedModel implements CodeModel {
  readonly specificationVersion = 'v3';
  readonly provider: string;
  readonly modelId: string;
  /** The AI SDK downloads files itself. */
  readonly supportedUrls = {};
  private readonly name: string;

  constructor(
    private readonly settings: CodeModelSettings,
    name: string | undefined,
    private readonly call: CallModel,
  ) {
    const { model = 'model' } = settings as Partial<CodeModelSettings>;
    const slash = model.indexOf('/');
    this.provider = slash < 0 ? 'baton' : model.slice(0, slash);
    this.modelId = model.slice(slash + 1);
    this.name = name ?? model.slice(0, MAX_NAME);
  }

  generate = (prompt: string | ModelPrompt): Promise<ModelAnswer> => {
    const answer = this.corrected(prompt);
    // An unhandled rejection, such as of the loser of a race, must not count as an error of the process.
    answer.catch(() => undefined);
    return answer;
  };

  private async corrected(prompt: string | ModelPrompt): Promise<ModelAnswer> {
    const { request, step = this.name } = this.requestOf(prompt);
    for (let corrections = 0; ; corrections++) {
      const answer = await this.call(step, request);
      const { wrong } = answer;
      if (!wrong) return answerOf(answer, request.schema !== undefined);
      if (corrections >= MAX_CORRECTIONS) {
        throw new Error(`The model's answer is not of the output schema: ${wrong.problem}.`);
      }
      request.messages = [...request.messages, answer.message, { role: 'user', content: wrong.correction }];
    }
  }

  stream = (prompt: string | ModelPrompt): ModelStreaming => {
    const { request, step = this.name } = this.requestOf(prompt);
    const pieces = new AnswerText();
    const called = this.call(step, request, (piece) => pieces.add(piece));
    called.then(
      ({ message }) => pieces.end(message),
      (error: unknown) => pieces.fail(error),
    );
    const answer = called.then((made) => {
      if (made.wrong)
        throw new Error(`The model's answer is not of the output schema: ${made.wrong.problem}.`);
      return answerOf(made, request.schema !== undefined);
    });
    answer.catch(() => undefined);
    return { textStream: pieces.texts(), answer };
  };

  /** For the AI SDK. */
  doGenerate = async (options: never): Promise<never> => {
    const { request, warnings, signal } = this.sdkRequest(options);
    const answer = await unless(signal, this.call(this.name, request));
    return { content: contentOf(answer.message), ...endOf(answer), warnings } as never;
  };

  /** For the AI SDK. */
  doStream = (options: never): Promise<never> => {
    const { request, warnings, signal } = this.sdkRequest(options);
    let parts: SdkParts | undefined;
    const stream = new ReadableStream<unknown>({
      start: (controller) => {
        const sent = (parts = new SdkParts((part) => controller.enqueue(part)));
        controller.enqueue({ type: 'stream-start', warnings });
        const called = this.call(this.name, request, (piece) => sent.piece(piece));
        unless(signal, called).then(
          (answer) => {
            sent.end(contentOf(answer.message));
            controller.enqueue({ type: 'finish', ...endOf(answer) });
            controller.close();
          },
          (error: unknown) => {
            sent.close();
            controller.error(error);
          },
        );
      },
      cancel: () => parts?.close(),
    });
    return Promise.resolve({ stream } as never);
  };

  private requestOf(prompt: string | ModelPrompt): { request: ModelCallRequest; step: string | undefined } {
    const given: ModelPrompt = typeof prompt === 'string' ? { prompt } : prompt;
    const { prompt: text, system, messages = [], tools, toolChoice, output, step, ...parameters } = given;
    const asked: ModelChatMessage[] = [
      ...(system === undefined ? [] : [{ role: 'system' as const, content: system }]),
      ...messages.map(withBase64),
      ...(text === undefined ? [] : [{ role: 'user' as const, content: text }]),
    ];
    const { settings } = this;
    const request = {
      settings,
      messages: asked,
      ...(tools && { tools: tools.map(offered) }),
      ...(toolChoice !== undefined && { toolChoice }),
      ...(output && { schema: output.schema, isChecked: true as const }),
      parameters,
    };
    return { request, step };
  }

  private sdkRequest(options: SdkOptions): {
    request: ModelCallRequest;
    warnings: unknown[];
    signal: AbortSignal | undefined;
  } {
    const { prompt, tools = [], toolChoice, responseFormat, abortSignal: signal } = options;
    const warnings = tools
      .filter(({ type }) => type !== 'function')
      .map(({ name }) => ({ type: 'unsupported', feature: `tool ${name}` }));
    const functions = tools.filter(({ type }) => type === 'function');
    const parameters = Object.fromEntries(
      PARAMETERS.flatMap((name) => (options[name] === undefined ? [] : [[name, options[name]]])),
    );
    const isJson = responseFormat?.type === 'json';
    const request = {
      settings: this.settings,
      messages: prompt.map(withBase64).map(withOwnOptions),
      ...(functions.length > 0 && { tools: functions.map(offered) }),
      ...(functions.length > 0 &&
        toolChoice && { toolChoice: toolChoice.type === 'tool' ? toolChoice : toolChoice.type }),
      ...(isJson && { schema: responseFormat.schema ?? { type: 'object' } }),
      parameters,
    };
    return { request, warnings, signal };
  }
}

/** Characters of the name of a step. */
const MAX_NAME = 200;

const PARAMETERS = [
  'maxOutputTokens',
  'temperature',
  'stopSequences',
  'topP',
  'topK',
  'presencePenalty',
  'frequencyPenalty',
  'seed',
  'providerOptions',
] as const;

/** What the AI SDK gives to a model (`LanguageModelV3CallOptions`), as far as Baton reads it. */
interface SdkOptions extends Partial<Record<(typeof PARAMETERS)[number], unknown>> {
  prompt: ModelChatMessage[];
  tools?: (ModelTool & { type: string })[];
  toolChoice?: { type: string };
  responseFormat?: { type: string; schema?: unknown };
  abortSignal?: AbortSignal;
}

const offered = ({ name, description = '', inputSchema }: ModelTool): ModelTool => ({
  name,
  description,
  inputSchema,
});

/**
 * Where an answer keeps the data that its provider needs back with the whole message: in the AI SDK, parts have options, and
 * messages have none.
 */
const OF_MESSAGE = 'batonMessage';

/** Bytes become Base64. */
function withBase64(message: ModelChatMessage): ModelChatMessage {
  if (!Array.isArray(message.content)) return message;
  return {
    ...message,
    content: message.content.map((part) => {
      const { data } = part;
      if (data instanceof URL)
        throw new TypeError('a file for a model must have its bytes as data, and no URL');
      return data instanceof Uint8Array ? { ...part, data: Buffer.from(data).toString('base64') } : part;
    }),
  };
}

type PartOptions = Record<string, unknown> | undefined;

function withOwnOptions(message: ModelChatMessage): ModelChatMessage {
  const [first, ...rest] = Array.isArray(message.content) ? message.content : [];
  const { [OF_MESSAGE]: own, ...options } = (first?.providerOptions as PartOptions) ?? {};
  if (!first || own === undefined) return message;
  return { ...message, providerOptions: own, content: [{ ...first, providerOptions: options }, ...rest] };
}

/** The content of an answer as the AI SDK has it. */
function contentOf({ content, providerOptions: own }: ModelChatMessage): ModelPart[] {
  const parts: ModelPart[] = typeof content === 'string' ? [{ type: 'text', text: content }] : content;
  return parts.map(({ providerOptions, ...part }, i) => {
    const metadata = {
      ...(providerOptions as PartOptions),
      ...(i === 0 && own !== undefined && { [OF_MESSAGE]: own }),
    };
    return {
      ...part,
      ...(part.type === 'tool-call' && { input: JSON.stringify(part.input ?? {}) }),
      ...(Object.keys(metadata).length > 0 && { providerMetadata: metadata }),
    };
  });
}

function endOf({ finish, rawFinish, usage }: ModelCallAnswer): object {
  const { inputTokens, outputTokens, reasoningTokens, cachedInputTokens, cacheWriteTokens = 0 } = usage;
  return {
    finishReason: { unified: finish, raw: rawFinish },
    usage: {
      inputTokens: {
        total: inputTokens,
        noCache: Math.max(0, inputTokens - cachedInputTokens - cacheWriteTokens),
        cacheRead: cachedInputTokens,
        cacheWrite: cacheWriteTokens,
      },
      outputTokens: { total: outputTokens, text: outputTokens - reasoningTokens, reasoning: reasoningTokens },
    },
  };
}

function answerOf({ message, finish, usage, model }: ModelCallAnswer, isData: boolean): ModelAnswer {
  const parts: ModelPart[] =
    typeof message.content === 'string' ? [{ type: 'text', text: message.content }] : message.content;
  const textOf = (type: string): string =>
    parts.map((part) => (part.type === type && typeof part.text === 'string' ? part.text : '')).join('');
  const text = textOf('text');
  const calls = parts.filter(({ type }) => type === 'tool-call');
  return {
    text,
    reasoning: textOf('reasoning'),
    // oxlint-disable-next-line no-restricted-properties -- the worker has checked it
    data: isData && finish === 'stop' ? (JSON.parse(withoutFence(text.trim())) as unknown) : undefined,
    toolCalls: calls.map(({ toolCallId, toolName, input }) => ({
      id: String(toolCallId),
      name: String(toolName),
      input,
    })),
    finishReason: finish,
    usage,
    model,
    message,
  };
}

/** The call continues, so that its step ends, but the code does not wait for it. */
async function unless<T>(signal: AbortSignal | undefined, call: Promise<T>): Promise<T> {
  if (!signal) return call;
  signal.throwIfAborted();
  let abort: () => void = () => undefined;
  const aborted = new Promise<never>((_, reject) => {
    abort = () => reject(signal.reason as Error);
    signal.addEventListener('abort', abort);
  });
  return Promise.race([call, aborted]).finally(() => signal.removeEventListener('abort', abort));
}

/** The text of an answer that grows. */
class AnswerText {
  private readonly waiting: string[] = [];
  private isOver = false;
  private hasText = false;
  private error: unknown;
  private wake: () => void = () => undefined;

  add({ kind, text }: ModelPiece): void {
    if (kind !== 'reply') return;
    this.hasText = true;
    this.waiting.push(text);
    this.wake();
  }

  /** An answer that was stored before has no pieces: it comes at once. */
  end(message: ModelChatMessage): void {
    for (const { type, text } of this.hasText ? [] : contentOf(message))
      if (type === 'text' && text !== '') this.waiting.push(String(text));
    this.isOver = true;
    this.wake();
  }

  fail(error: unknown): void {
    this.error = error;
    this.isOver = true;
    this.wake();
  }

  async *texts(): AsyncGenerator<string, void> {
    for (;;) {
      const text = this.waiting.shift();
      if (text !== undefined) yield text;
      else if (!this.isOver) await new Promise<void>((resolve) => (this.wake = resolve));
      else if (this.error !== undefined) throw this.error as Error;
      else return;
    }
  }
}

/** The stream of an answer for the AI SDK. */
class SdkParts {
  private readonly open: { id: string; kind: 'text' | 'reasoning' }[] = [];
  private isClosed = false;

  constructor(private readonly send: (part: unknown) => void) {}

  close(): void {
    this.isClosed = true;
  }

  piece({ kind: of, text }: ModelPiece): void {
    if (this.isClosed) return;
    const kind = of === 'reply' ? 'text' : 'reasoning';
    if (this.open.at(-1)?.kind !== kind) this.begin(kind);
    this.send({ type: `${kind}-delta`, id: this.open.at(-1)?.id, delta: text });
  }

  /** Sends the parts that did not come in pieces. The end of each part has the data that the provider needs back. */
  end(content: readonly ModelPart[]): void {
    if (this.isClosed) return;
    const streamed = this.open.length > 0;
    for (const kind of ['reasoning', 'text'] as const) {
      const open = this.open.filter((each) => each.kind === kind);
      const parts = content.filter(({ type, text }) => type === kind && text !== '');
      for (const [i, { id }] of open.entries()) {
        const part = i === open.length - 1 ? parts.at(-1) : parts[i];
        this.send({ type: `${kind}-end`, id, ...metadataOf(part) });
      }
    }
    for (const part of content) {
      if (part.type !== 'text' && part.type !== 'reasoning') this.send(part);
      else if (!streamed || part.text === '') this.whole(part);
    }
    this.close();
  }

  private whole(part: ModelPart): void {
    const { type, text } = part;
    const id = this.begin(type as 'text' | 'reasoning');
    if (text !== '') this.send({ type: `${type}-delta`, id, delta: text });
    this.send({ type: `${type}-end`, id, ...metadataOf(part) });
  }

  private begin(kind: 'text' | 'reasoning'): string {
    const id = String(this.open.length);
    this.open.push({ id, kind });
    this.send({ type: `${kind}-start`, id });
    return id;
  }
}

const metadataOf = (part: ModelPart | undefined): object =>
  part?.providerMetadata === undefined ? {} : { providerMetadata: part.providerMetadata };
