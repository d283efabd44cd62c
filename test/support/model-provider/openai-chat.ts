import {
  type Dialect,
  type ModelRequest,
  type ProviderEvent,
  type Reply,
  chunksOf,
  idOf,
  inputOf,
  usageOf,
  wholeOf,
} from './reply.js';

const FINISH = { stop: 'stop', length: 'length', filter: 'content_filter' } as const;

function finishOf({ calls, finish, reason }: Reply): string {
  if (reason !== undefined) return reason;
  return calls?.length && !finish ? 'tool_calls' : FINISH[finish ?? 'stop'];
}

function usage(reply: Reply) {
  const { input, output, cached, reasoning } = usageOf(reply);
  return {
    prompt_tokens: input,
    completion_tokens: output,
    total_tokens: input + output,
    prompt_tokens_details: { cached_tokens: cached },
    completion_tokens_details: { reasoning_tokens: reasoning },
  };
}

const toolCalls = (reply: Reply) =>
  (reply.calls ?? []).map((call, index) => ({
    index,
    id: idOf(call, index),
    type: 'function',
    function: { name: call.name, arguments: inputOf(call) },
  }));

/** OpenAI's chat completions, also those of Ollama, vLLM and gateways. */
export const openaiChat: Dialect = {
  whole: (reply, { model }) => ({
    id: 'chatcmpl-1',
    object: 'chat.completion',
    created: 1,
    model,
    choices: [
      {
        index: 0,
        message: {
          role: 'assistant',
          content: reply.text === undefined ? null : wholeOf(reply.text),
          ...(reply.reasoning && { reasoning_content: wholeOf(reply.reasoning) }),
          ...(reply.calls && { tool_calls: toolCalls(reply) }),
        },
        finish_reason: finishOf(reply),
      },
    ],
    usage: usage(reply),
  }),

  events(reply, { model, body }: ModelRequest): ProviderEvent[] {
    const chunk = (delta: object, finish: string | null = null) => ({
      data: {
        id: 'chatcmpl-1',
        object: 'chat.completion.chunk',
        created: 1,
        model,
        choices: [{ index: 0, delta, finish_reason: finish }],
      },
    });
    const wantsUsage = Boolean((body as { stream_options?: { include_usage?: boolean } }).stream_options);
    const last = {
      id: 'chatcmpl-1',
      object: 'chat.completion.chunk',
      created: 1,
      model,
      choices: [],
      usage: usage(reply),
    };
    return [
      chunk({ role: 'assistant', content: '' }),
      ...chunksOf(reply.reasoning).map((text) => chunk({ reasoning_content: text })),
      ...chunksOf(reply.text).map((content) => chunk({ content })),
      ...toolCalls(reply).flatMap(({ function: { name, arguments: json }, ...call }) => [
        chunk({ tool_calls: [{ ...call, function: { name, arguments: '' } }] }),
        ...halves(json).map((part) =>
          chunk({ tool_calls: [{ index: call.index, function: { arguments: part } }] }),
        ),
      ]),
      chunk({}, finishOf(reply)),
      ...(wantsUsage ? [{ data: last }] : []),
      { data: '[DONE]' },
    ];
  },

  error: (status, message) => ({
    error: {
      message,
      type: status === 429 ? 'rate_limit_error' : status < 500 ? 'invalid_request_error' : 'server_error',
      code: null,
    },
  }),
  errorEvent: (message) => ({ data: { error: { message, type: 'server_error', code: null } } }),
};

/** Arguments come in pieces, cut at unlikely positions. */
export function halves(text: string): string[] {
  const middle = Math.floor(text.length / 2);
  return [text.slice(0, middle), text.slice(middle)].filter((part) => part !== '');
}
