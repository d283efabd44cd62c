import type {
  ModelCallAnswer,
  ModelCallRequest,
  ModelChatMessage,
} from '../runtimes/executor/model-protocol.js';

/** The answer of a model in a unit test: a text, or more. `data` is the answer for `output`. */
export type ScriptedAnswer =
  | string
  | {
      text?: string;
      data?: unknown;
      reasoning?: string;
      toolCalls?: readonly { name: string; input: unknown; id?: string }[];
      /** Default: `tool-calls` if there are calls, or else `stop` */
      finishReason?: string;
    };

/** A model call, for a test. */
export interface ScriptedCall {
  /** Name of its step. */
  step: string;
  /** `provider/model` */
  model: string;
  messages: readonly ModelChatMessage[];
  tools: readonly { name: string }[];
  /** JSON Schema of the answer. */
  schema?: unknown;
}

/** Answers of models in the order of the calls, or a function that makes them. */
export type ModelScript =
  | readonly ScriptedAnswer[]
  | ((call: ScriptedCall) => ScriptedAnswer | Promise<ScriptedAnswer>);

/** @returns a function that answers the calls of a test: it throws if the test has no answer */
export function scriptedModels(
  script: ModelScript,
): (step: string, request: ModelCallRequest) => Promise<ModelCallAnswer> {
  let calls = 0;
  return async (step, { settings, messages, tools = [], schema }) => {
    const { model } = settings as { model: string };
    const call = { step, model, messages, tools: tools as { name: string }[], schema };
    const answer = typeof script === 'function' ? await script(call) : script[calls++];
    if (answer === undefined)
      throw new Error(`the test has no answer for the model "${model}": add it to models`);
    return answerOf(answer, model);
  };
}

function answerOf(answer: ScriptedAnswer, model: string): ModelCallAnswer {
  const {
    text,
    data,
    reasoning,
    toolCalls = [],
    finishReason,
  } = typeof answer === 'string' ? { text: answer } : answer;
  const words = text ?? (data === undefined ? '' : JSON.stringify(data));
  const content = [
    ...(reasoning === undefined ? [] : [{ type: 'reasoning', text: reasoning }]),
    ...(words === '' ? [] : [{ type: 'text', text: words }]),
    ...toolCalls.map(({ name, input, id }, i) => ({
      type: 'tool-call',
      toolCallId: id ?? `call-${i + 1}`,
      toolName: name,
      input,
    })),
  ];
  return {
    message: { role: 'assistant', content },
    finish: finishReason ?? (toolCalls.length > 0 ? 'tool-calls' : 'stop'),
    usage: { inputTokens: 0, outputTokens: 0, reasoningTokens: 0, cachedInputTokens: 0 },
    model,
  };
}
