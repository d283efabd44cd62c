import type { Message, Part, SendMessageRequest } from '@a2a-js/sdk';
import type { ServerCallContext } from '@a2a-js/sdk/server';

// The functions of `requestContext.context` for authors of executors (docs/agents/durable-steps.md). Types only: an agent's
// module needs nothing of Baton at run time.

import type { ModelChatMessage } from '../model-protocol.js';

export type { InputTimeout } from './input-timeout.js';
export type { ModelChatMessage, ModelPart } from '../model-protocol.js';

/** Milliseconds, or a text such as `500ms`, `30s`, `5m`, `2h` or `7d`. At most a year. */
export type Duration = number | string;

/**
 * A value as it comes back from JSON: a `Date` is a text, members without a value are left out. `never` for what JSON does not keep, such
 * as a `Map`: the step rejects.
 */
export type Jsonify<T> = T extends string | number | boolean | null | undefined
  ? T
  : T extends { toJSON: () => infer Json }
    ? Jsonify<Json>
    : T extends
          | ReadonlyMap<unknown, unknown>
          | ReadonlySet<unknown>
          | Error
          | RegExp
          | Promise<unknown>
          | ArrayBufferView
          | ArrayBuffer
          | bigint
          | symbol
          | ((...values: never[]) => unknown)
      ? never
      : T extends object
        ? { [Key in keyof T]: Jsonify<T[Key]> }
        : T;

/** `Result`: the result of the step. */
export interface StepOptions<Result = unknown> {
  /** How often to try before the error is final: 1 to 20. Default 3 */
  attempts?: number;
  /** Pause before the second try. It doubles with each try, up to one hour. Default 1 s */
  backoff?: Duration;
  /** A try that takes longer has failed. Default: no limit */
  timeout?: Duration;
  /** Whether to try again after this error. Default: always */
  retryIf?: (error: unknown) => boolean;
  /**
   * Looks whether an earlier try has had its effect, before the function runs again: after a crash, and after an error. `done: true` ends
   * the step with `result`. If it throws, the try has failed.
   */
  verify?: (call: Pick<StepCall, 'key' | 'signal'>) => Verified | Promise<Verified>;
  /**
   * What to do if the process died while the function ran, and there is no `verify`. `repeat`: run it again with the same key. `ask`:
   * the task becomes `input-required`, and a person answers whether it was carried out. `fail`: the step rejects with a `StepError`
   * whose cause has the name `UnknownOutcome`. Default: `repeat`
   */
  onUnknown?: 'repeat' | 'ask' | 'fail';
  /**
   * Undoes the step after it has ended, when the code throws in the end, or the task is canceled. Compensations run one after the other, the step that ended last
   * first. Each is a step of its own, with its own key and up to three tries of 30 seconds.
   */
  compensate?: (result: Result, call: StepCall) => unknown;
}

/** Whether an effect is there, and the result of the step if it is. */
export type Verified = { done: true; result?: unknown } | { done: false; result?: never };

export interface InputOptions {
  /**
   * How long to wait for an answer: then `waitForInput` rejects with an `InputTimeout`, and the task is working again. Default: as long
   * as it takes
   */
  timeout?: Duration;
}

/** The argument of the function of a step. */
export interface StepCall {
  /** Counts from 1 over all tries, crashed ones included. */
  attempt: number;
  /**
   * Identifies what the step does outside: the same in every try and every process, and different for each step. Send it as
   * `Idempotency-Key`, or store it beside what you write, so that a repetition is recognized. 36 printable characters.
   */
  key: string;
  /** Aborts when the try has timed out, and when the turn is stopped. */
  signal: AbortSignal;
}

/** The answer of another agent. */
export interface AgentReply {
  /** The task of the other agent. Give it to `callAgent` to answer a question. */
  taskId: string;
  /** `completed`, or the agent asks. */
  state: 'completed' | 'input-required' | 'auth-required';
  /** The text, or `{text, data, files}` if there is more. If the agent asks: its question. */
  content: unknown;
}

export interface CallOptions {
  /** A JSON value in addition to the message. */
  data?: unknown;
  /** A task of this agent that has asked, to answer it. Default: a new task */
  taskId?: string;
}

/** The message of a caller, with `metadata` and `configuration` of its request. */
export type InputAnswer = Message & { request: Pick<SendMessageRequest, 'metadata' | 'configuration'> };

/** The model of an agent in code: the settings that an `llm` agent has for its model (docs/agents/llm.md). */
export interface CodeModelSettings {
  /** `provider/model`, such as `openai/gpt-5-mini` */
  model: string;
  /** The interface of OpenAI to use. Default `responses` */
  api?: 'responses' | 'chat';
  /** The provider's URL, if it is not the usual one. */
  baseUrl?: string;
  /** Name of the tenant's secret with the key. Default: the provider's name */
  key?: string;
  /** The system prompt of every call. */
  prompt?: string;
  temperature?: number;
  topP?: number;
  maxOutputTokens?: number;
  reasoning?: 'low' | 'medium' | 'high';
  /** Further options of the provider, as its package of the AI SDK takes them. */
  providerOptions?: Record<string, Record<string, unknown>>;
  /** Models that are asked in this order if the one before is overloaded or out of reach. */
  fallback?: Pick<
    CodeModelSettings,
    | 'model'
    | 'api'
    | 'baseUrl'
    | 'key'
    | 'temperature'
    | 'topP'
    | 'maxOutputTokens'
    | 'reasoning'
    | 'providerOptions'
  >[];
  /** Whether Anthropic keeps the instructions, the tools and the conversation in its cache. Default `auto` */
  promptCache?: 'auto' | 'off';
  budget?: {
    /** Maximum tokens of one run, input and output. */
    tokens?: number;
  };
  /** Maximum duration of one call. Default 120 s */
  timeout?: Duration;
  /** Maximum time to the first output. Default 60 s */
  firstToken?: Duration;
  /** Maximum pause between two outputs. Default 30 s */
  stall?: Duration;
  /** Maximum retries of a failed call. Default 3 */
  retries?: number;
  /** Which calls are recorded. Default: as the operator has set it */
  record?: 'none' | 'failed' | 'all';
}

/** A tool that a model may ask for. Your code makes the call. */
export interface ModelTool {
  /** 1 to 64 letters, digits, underscores or hyphens */
  name: string;
  description?: string;
  /** JSON Schema of its input */
  inputSchema: unknown;
}

/** A request to a model. All members override the settings of the model for this call. */
export interface ModelPrompt {
  /** A message of the user, after `messages`. */
  prompt?: string;
  /** Instructions in addition to `prompt` of the settings. */
  system?: string;
  /** The conversation, as `ModelMessage` of the AI SDK. Files have their bytes as `data`. */
  messages?: ModelChatMessage[];
  tools?: ModelTool[];
  toolChoice?: 'auto' | 'none' | 'required' | { type: 'tool'; toolName: string };
  /** The answer is JSON of this schema: `data` of the answer. A wrong answer is corrected up to twice, each time with a call. */
  output?: { schema: unknown };
  maxOutputTokens?: number;
  temperature?: number;
  topP?: number;
  topK?: number;
  presencePenalty?: number;
  frequencyPenalty?: number;
  stopSequences?: string[];
  seed?: number;
  /** Options of the provider in addition to those of the settings. */
  providerOptions?: Record<string, Record<string, unknown>>;
  /** Name of the step. Default: that of the model */
  step?: string;
}

/** The answer of a model. */
export interface ModelAnswer {
  text: string;
  /** The reasoning of the model, if it sends it. */
  reasoning: string;
  /** The JSON value, if there is a schema for it and the answer is whole. */
  data: unknown;
  /** The tools that it asks for. */
  toolCalls: { id: string; name: string; input: unknown }[];
  /** `stop`, `tool-calls`, `length`, `content-filter`, `error` or `other` */
  finishReason: string;
  usage: { inputTokens: number; outputTokens: number; reasoningTokens: number; cachedInputTokens: number };
  /** `provider/model` */
  model: string;
  /** The answer as a message, for `messages` of the next request. */
  message: ModelChatMessage;
}

/** An answer that is on its way. */
export interface ModelStreaming {
  /** Its text. An answer that an earlier attempt has got comes at once. */
  textStream: AsyncIterable<string>;
  answer: Promise<ModelAnswer>;
}

/**
 * A model that Baton calls for the agent, with the secrets of the tenant. Each call is a step. The object is also a `LanguageModelV3`: give
 * it to `generateText` and the other functions of the AI SDK 6 as `model`. Its functions need no `this`.
 */
export interface CodeModel {
  /** Rejects with a `StepError` if the provider fails after all retries, or if a budget forbids the call. */
  generate: (prompt: string | ModelPrompt) => Promise<ModelAnswer>;
  /** As `generate`, with the text as it arrives. A wrong answer for `output` is not corrected, and a call whose text has begun is not retried. */
  stream: (prompt: string | ModelPrompt) => ModelStreaming;
  readonly specificationVersion: 'v3';
  readonly provider: string;
  readonly modelId: string;
  readonly supportedUrls: Record<string, RegExp[]>;
  /** For the AI SDK. The types fit its own without a dependency on it. */
  // oxlint-disable-next-line typescript/method-signature-style -- only the parameters of methods fit those of the AI SDK
  doGenerate(options: never): Promise<never>;
  /** For the AI SDK. */
  // oxlint-disable-next-line typescript/method-signature-style -- see above
  doStream(options: never): Promise<never>;
}

/** MCP servers, and the terms of approvals: the settings `tools.mcp` and `approvals` of an `llm` agent (docs/agents/tools.md). */
export interface CodeToolSettings {
  mcp: unknown[];
  approvals?: unknown;
}

/** The result of a tool call. */
export interface ToolAnswer {
  /** False: the tool has failed, its input is not valid, or a person has refused the call. `content` has the reason. */
  ok: boolean;
  /** A JSON value. */
  content: unknown;
  /** Text for a model in place of `content`. */
  text?: string;
  files?: { name: string; mediaType: string; base64: string }[];
}

/** The tools of MCP servers. Each call is a step. */
export interface CodeTools {
  /** For `tools` of a model. */
  list: ModelTool[];
  /** For `tools` of the AI SDK. */
  sdk: Record<string, never>;
  /** Rejects with a `StepError` if there is no such tool, or no connection to its server. */
  call: (tool: string, input: unknown) => Promise<ToolAnswer>;
}

/** A message of a conversation. It fits into `messages` of a model. */
export interface HistoryMessage {
  role: 'user' | 'assistant';
  content: string;
}

/** A value of the state of a context. */
export interface StateValue {
  /** Undefined: the key has no value. */
  value: unknown;
  /** Counts the writes of the key. 0: it has no value. */
  version: number;
}

/** The outcome of a write: `isSet`, or the value and the version that the key has instead. */
export type StateOutcome = { isSet: true; version: number } | ({ isSet: false } & StateValue);

/**
 * Values that the agent keeps for a context: for all tasks of the agent in it that have the same owner. They are deleted with the last of
 * these tasks. A context has at most 64 keys.
 */
export interface ContextState {
  get: (key: string) => Promise<StateValue>;
  /**
   * @param key 1 to 128 characters
   * @param value a JSON value of at most 16 KiB
   * @param options with `version` the value is set only if the key has that version; 0: only if it has no value
   */
  set: (key: string, value: unknown, options?: { version?: number }) => Promise<StateOutcome>;
}

/** Steps of a task. A finished step is never run again, also after a crash. A name may be used several times. The functions need no `this`. */
export interface DurableSteps {
  /**
   * Runs a function once and stores its result, a JSON value of at most 256 KiB. All attempts get what was stored: a `Date` is a text.
   * It rejects a `Map`, an `Error`, `NaN` and other values that JSON does not keep. The
   * step in flight when a process dies is run again. Rejects with a `StepError` after the last try.
   */
  step: <T>(
    name: string,
    run: (call: StepCall) => T | Promise<T>,
    options?: StepOptions<Jsonify<T>>,
  ) => Promise<Jsonify<T>>;
  /** Waits. A long sleep takes no worker and no slot, and survives restarts. */
  sleep: (name: string, duration: Duration | Date) => Promise<void>;
  /**
   * Asks the caller: the task becomes `input-required`. Resolves with the caller's next message, on any worker. `request` has the
   * caller's request without its message. Rejects with an `InputTimeout` (`code` is `INPUT_TIMEOUT`) after `timeout`.
   */
  waitForInput: (name: string, question: string | Part[], options?: InputOptions) => Promise<InputAnswer>;
  /**
   * Gives a task to another agent of the tenant and waits for its answer without worker and slot. Rejects with a
   * `StepError` if the agent fails, refuses or is canceled, and if a limit or a circle forbids the call.
   */
  callAgent: (name: string, agent: string, message: string, options?: CallOptions) => Promise<AgentReply>;
  /**
   * Tells old tasks from new ones after a change of the steps. False for a task that was beyond this place before the change, true for
   * all others, in every attempt.
   */
  patched: (id: string) => Promise<boolean>;
  /**
   * Begins anew, in the same turn: the code runs from its beginning with the same message, without steps, and with this state as
   * `lastState`. The steps so far are deleted, so a task may continue for ever. Call it when no step runs. It never resolves.
   * @param state a JSON value of at most 256 KiB
   */
  continueAs: (state: unknown) => Promise<never>;
  /** The state that the execution before has given to `continueAs`. Undefined in the first one. */
  lastState: unknown;
  /**
   * A model with these settings. It calls nothing yet.
   * @param name of the steps of its calls. Default: the model
   */
  model: (settings: CodeModelSettings, name?: string) => CodeModel;
  /**
   * The messages of the context before this one: of at most 16 earlier tasks of the agent that have the same owner, and of earlier
   * turns of this task. The newest 100 messages, of at most 60,000 characters, the oldest first. It is a step, so all attempts get
   * the same.
   */
  history: () => Promise<HistoryMessage[]>;
  /**
   * Opens MCP servers with the secrets of the tenant. The list of their tools is a step, and each call is one, with an effect key. The task is
   * `input-required` while a person must approve a call.
   */
  tools: (settings: CodeToolSettings) => Promise<CodeTools>;
  /** Values that the agent keeps for the context. Reads and writes are steps. */
  contextState: ContextState;
}

/** The secrets of the tenant that has called (docs/agents/executors.md#secrets-of-the-tenant). The function needs no `this`. */
export interface TenantSecrets {
  /**
   * Reads a secret of the tenant that `config.secrets` of `agent.yaml` names. Rejects with an Error that names what is missing:
   * the name in `agent.yaml`, the secret, or its permission for this agent. Do not publish it, and do not return it from a step.
   */
  secret: (name: string) => Promise<string>;
}

/**
 * The type of `requestContext.context` on Baton, if the agent has the same copy of the SDK.
 * @deprecated Use `stepsOf(requestContext)` of `@baton/agent`: it fits every copy.
 */
export type BatonCallContext = ServerCallContext & DurableSteps & TenantSecrets;
