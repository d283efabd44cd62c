import { halves } from './openai-chat.js';
import {
  type Dialect,
  type ProviderEvent,
  type Reply,
  chunksOf,
  idOf,
  inputOf,
  usageOf,
  wholeOf,
} from './reply.js';

const STOP = { stop: 'end_turn', length: 'max_tokens', filter: 'refusal' } as const;

const stopReason = ({ calls, finish, reason }: Reply): string =>
  reason ?? (calls?.length && !finish ? 'tool_use' : STOP[finish ?? 'stop']);

function usage(reply: Reply) {
  const { input, output, cached, written } = usageOf(reply);
  return {
    input_tokens: input,
    output_tokens: output,
    cache_creation_input_tokens: written,
    cache_read_input_tokens: cached,
  };
}

/** A block of the answer, and the deltas it is streamed as. */
function blocks(reply: Reply): { start: object; deltas: object[]; whole: object }[] {
  const thinking = reply.reasoning && {
    start: { type: 'thinking', thinking: '', signature: '' },
    deltas: [
      ...chunksOf(reply.reasoning).map((text) => ({ type: 'thinking_delta', thinking: text })),
      { type: 'signature_delta', signature: 'signed' },
    ],
    whole: { type: 'thinking', thinking: wholeOf(reply.reasoning), signature: 'signed' },
  };
  const text = reply.text !== undefined && {
    start: { type: 'text', text: '' },
    deltas: chunksOf(reply.text).map((chunk) => ({ type: 'text_delta', text: chunk })),
    whole: { type: 'text', text: wholeOf(reply.text) },
  };
  const calls = (reply.calls ?? []).map((call, index) => ({
    start: { type: 'tool_use', id: idOf(call, index), name: call.name, input: {} },
    deltas: halves(inputOf(call)).map((partial_json) => ({ type: 'input_json_delta', partial_json })),
    whole: { type: 'tool_use', id: idOf(call, index), name: call.name, input: call.input },
  }));
  return [...(thinking ? [thinking] : []), ...(text ? [text] : []), ...calls];
}

const ERRORS: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  429: 'rate_limit_error',
  529: 'overloaded_error',
};

/** Anthropic's messages. */
export const anthropic: Dialect = {
  whole: (reply, { model }) => ({
    id: 'msg_1',
    type: 'message',
    role: 'assistant',
    model,
    content: blocks(reply).map(({ whole }) => whole),
    stop_reason: stopReason(reply),
    stop_sequence: null,
    usage: usage(reply),
  }),

  events(reply, { model }): ProviderEvent[] {
    const events = [
      {
        type: 'message_start',
        message: {
          id: 'msg_1',
          type: 'message',
          role: 'assistant',
          model,
          content: [],
          stop_reason: null,
          stop_sequence: null,
          usage: { ...usage(reply), output_tokens: 1 },
        },
      },
      { type: 'ping' },
      ...blocks(reply).flatMap(({ start, deltas }, index) => [
        { type: 'content_block_start', index, content_block: start },
        ...deltas.map((delta) => ({ type: 'content_block_delta', index, delta })),
        { type: 'content_block_stop', index },
      ]),
      {
        type: 'message_delta',
        delta: { stop_reason: stopReason(reply), stop_sequence: null },
        usage: { output_tokens: usageOf(reply).output },
      },
      { type: 'message_stop' },
    ];
    return events.map((data) => ({ event: data.type, data }));
  },

  error: (status, message) => ({
    type: 'error',
    error: { type: ERRORS[status] ?? (status < 500 ? 'invalid_request_error' : 'api_error'), message },
  }),
  errorEvent: (message) => ({
    event: 'error',
    data: { type: 'error', error: { type: 'overloaded_error', message } },
  }),
};
