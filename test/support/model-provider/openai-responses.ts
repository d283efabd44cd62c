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

type Item = Record<string, unknown> & { id: string; type: string };

function items(reply: Reply): Item[] {
  const reasoning: Item[] = reply.reasoning
    ? [
        {
          id: 'rs_1',
          type: 'reasoning',
          encrypted_content: 'sealed',
          summary: [{ type: 'summary_text', text: wholeOf(reply.reasoning) }],
        },
      ]
    : [];
  const text: Item[] =
    reply.text === undefined
      ? []
      : [
          {
            id: 'msg_1',
            type: 'message',
            status: 'completed',
            role: 'assistant',
            content: [{ type: 'output_text', text: wholeOf(reply.text), annotations: [] }],
          },
        ];
  const calls = (reply.calls ?? []).map((call, index) => ({
    id: `fc_${index + 1}`,
    type: 'function_call',
    status: 'completed',
    call_id: idOf(call, index),
    name: call.name,
    arguments: inputOf(call),
  }));
  return [...reasoning, ...text, ...calls];
}

function response(reply: Reply, model: string, status: string) {
  const { input, output, cached, reasoning } = usageOf(reply);
  const reason = reply.reason ?? (reply.finish === 'length' ? 'max_output_tokens' : 'content_filter');
  return {
    id: 'resp_1',
    object: 'response',
    created_at: 1,
    model,
    status,
    error: null,
    incomplete_details: isWhole(reply) ? null : { reason },
    output: status === 'in_progress' ? [] : items(reply),
    usage: {
      input_tokens: input,
      input_tokens_details: { cached_tokens: cached },
      output_tokens: output,
      output_tokens_details: { reasoning_tokens: reasoning },
      total_tokens: input + output,
    },
  };
}

const isWhole = ({ finish, reason }: Reply): boolean =>
  reason === undefined && (finish === undefined || finish === 'stop');

/** The events of one item of the output: its beginning, its content in chunks, its end. */
function itemEvents(item: Item, output_index: number, reply: Reply): Record<string, unknown>[] {
  const at = { item_id: item.id, output_index };
  const added = (empty: object) => ({
    type: 'response.output_item.added',
    output_index,
    item: { ...item, status: 'in_progress', ...empty },
  });
  const done = { type: 'response.output_item.done', output_index, item };
  switch (item.type) {
    case 'reasoning':
      return [
        added({ summary: [] }),
        { ...at, type: 'response.reasoning_summary_part.added', summary_index: 0 },
        ...chunksOf(reply.reasoning).map((delta) => ({
          ...at,
          type: 'response.reasoning_summary_text.delta',
          summary_index: 0,
          delta,
        })),
        { ...at, type: 'response.reasoning_summary_part.done', summary_index: 0 },
        done,
      ];
    case 'message':
      return [
        added({ content: [] }),
        ...chunksOf(reply.text).map((delta) => ({
          ...at,
          type: 'response.output_text.delta',
          content_index: 0,
          delta,
          logprobs: [],
        })),
        done,
      ];
    default:
      return [
        added({ arguments: '' }),
        ...halves(String(item.arguments)).map((delta) => ({
          ...at,
          type: 'response.function_call_arguments.delta',
          delta,
        })),
        done,
      ];
  }
}

/** OpenAI's responses. */
export const openaiResponses: Dialect = {
  whole: (reply, { model }) => response(reply, model, isWhole(reply) ? 'completed' : 'incomplete'),

  events(reply, { model }): ProviderEvent[] {
    const events = [
      { type: 'response.created', response: response(reply, model, 'in_progress') },
      ...items(reply).flatMap((item, index) => itemEvents(item, index, reply)),
      {
        type: isWhole(reply) ? 'response.completed' : 'response.incomplete',
        response: response(reply, model, isWhole(reply) ? 'completed' : 'incomplete'),
      },
    ];
    return events.map((data, sequence_number) => ({
      event: data.type as string,
      data: { ...data, sequence_number },
    }));
  },

  error: (status, message) => ({
    error: {
      message,
      type: status === 429 ? 'rate_limit_exceeded' : status < 500 ? 'invalid_request_error' : 'server_error',
      code: null,
      param: null,
    },
  }),
  errorEvent: (message) => ({
    event: 'error',
    data: {
      type: 'error',
      sequence_number: 99,
      error: { type: 'server_error', code: 'server_error', message, param: null },
    },
  }),
};
