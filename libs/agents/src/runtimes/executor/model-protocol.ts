// Messages between an agent's process and the worker about a model call. No imports: both sides load it.

/** A part of a message, as the AI SDK has it. Bytes are Base64. */
export interface ModelPart {
  type: string;
  [member: string]: unknown;
}

/** A message to a model, or from it, in the form of a `ModelMessage` of the AI SDK. */
export interface ModelChatMessage {
  role: 'system' | 'user' | 'assistant' | 'tool';
  content: string | ModelPart[];
  providerOptions?: unknown;
}

/** The request of a call: JSON of at most `STEP_LIMITS.modelRequestBytes`. The worker checks it. */
export interface ModelCallRequest {
  /** As the author has written them. */
  settings: unknown;
  messages: ModelChatMessage[];
  tools?: unknown;
  toolChoice?: unknown;
  /** JSON Schema of the answer. */
  schema?: unknown;
  /** The worker checks the answer against the schema. */
  isChecked?: true;
  /** Settings that the call overrides, such as `temperature`. */
  parameters?: Record<string, unknown>;
}

/** The answer of a model, as the journal has it. */
export interface ModelCallAnswer {
  /** Texts, reasoning and tool calls in their order. */
  message: ModelChatMessage;
  /** stop, tool-calls, length, content-filter, error or other */
  finish: string;
  /** The same in the provider's own word. */
  rawFinish?: string;
  usage: {
    inputTokens: number;
    outputTokens: number;
    reasoningTokens: number;
    cachedInputTokens: number;
    cacheWriteTokens?: number;
  };
  /** provider/model */
  model: string;
  /** Set if the answer does not fit the schema: what is wrong, and the message that asks the model to correct it. */
  wrong?: { problem: string; correction: string };
}

/** Text of an answer that is on its way. */
export interface ModelPiece {
  kind: 'reply' | 'reasoning';
  text: string;
}
