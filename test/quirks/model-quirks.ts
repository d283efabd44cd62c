import type { ProviderEvent, Reply } from '../support/model-provider/reply.js';
import type { Quirk } from './quirk.js';

/** The interfaces of model providers, each with the settings of an agent that uses it. */
export const MODEL_PEERS = {
  openai: { model: 'openai/gpt-5-mini' },
  'openai with api: chat': { model: 'openai/gpt-5-mini', api: 'chat' },
  'openai-compatible': { model: 'openai-compatible/m', key: 'mine' },
  anthropic: { model: 'anthropic/claude-sonnet-4-5' },
  google: { model: 'google/gemini-2.5-flash' },
} as const;

export type ModelPeer = keyof typeof MODEL_PEERS;

/**
 * What a model provider does. In `caller`, `<provider>`, `<model>` and `<key>` stand for the names of the provider, of
 * the model, and of the secret with the key.
 */
export interface ModelQuirk extends Quirk {
  on: readonly ModelPeer[];
  /** What it answers, one after the other. */
  replies: readonly Reply[] | ((peer: ModelPeer) => readonly Reply[]);
  /** Inputs of the tool `weather` that are executed. */
  executed?: readonly object[];
  /** Further settings of the agent. */
  config?: object;
}

const ALL = Object.keys(MODEL_PEERS) as ModelPeer[];
const CHAT: readonly ModelPeer[] = ['openai with api: chat', 'openai-compatible'];
const HELLO: Reply = { text: ['Hel', 'lo.'] };
const BERN = { city: 'Bern' };
const CALL: Reply = { calls: [{ name: 'weather', input: BERN }] };
const SUNNY = 'Sunny.';
const THOUGHT = ['Let me ', 'see.'];

// oxlint-disable-next-line typescript/no-explicit-any -- each interface has other events
type Data = any;

const dataOf = ({ data }: ProviderEvent): Data => data;
/** Changes the data of each event, but not the text `[DONE]`. */
const each =
  (change: (data: Data) => object): Reply['wire'] =>
  (events) =>
    events.map((event) =>
      typeof event.data === 'string' ? event : { ...event, data: change(structuredClone(event.data)) },
    );
/** Sends events before the second event. */
const insert =
  (...more: object[]): Reply['wire'] =>
  (events) => [...events.slice(0, 1), ...more.map((data) => ({ data })), ...events.slice(1)];
const only = (...data: object[]): Reply => ({ wire: () => data.map((each) => ({ data: each })) });

/** Changes the delta of each chunk of chat completions. */
const eachDelta = (change: (delta: Data) => object): Reply['wire'] =>
  each((data: Data) => {
    const choice = data.choices?.[0];
    return choice ? { ...data, choices: [{ ...choice, delta: change(choice.delta) }] } : data;
  });

const UNKNOWN: Record<ModelPeer, readonly object[]> = {
  openai: [
    { type: 'response.telemetry', sequence_number: 50, load: 1 },
    { type: 'response.output_item.added', output_index: 9, item: { type: 'hologram', id: 'h_1' } },
    {
      type: 'response.output_text.delta',
      item_id: 'h_1',
      output_index: 9,
      content_index: 0,
      delta: 'unseen',
    },
    { type: 'response.output_item.done', output_index: 9, item: { type: 'hologram', id: 'h_1' } },
  ],
  'openai with api: chat': [{ object: 'telemetry', load: 1 }, { choices: [{ index: 0, hologram: true }] }],
  'openai-compatible': [{ object: 'telemetry', load: 1 }, { choices: [{ index: 0, hologram: true }] }],
  anthropic: [
    { type: 'telemetry', load: 1 },
    { type: 'content_block_start', index: 9, content_block: { type: 'hologram', pixels: 3 } },
    { type: 'content_block_delta', index: 9, delta: { type: 'pixel_delta', pixel: 1 } },
    { type: 'content_block_stop', index: 9 },
  ],
  google: [{ telemetry: { load: 1 } }, { candidates: [{ index: 0, content: { parts: [{ hologram: 1 }] } }] }],
};

const OVERLOADED: Record<ModelPeer, object> = {
  openai: {
    type: 'error',
    error: { type: 'server_error', code: 'server_is_overloaded', message: 'Too busy' },
  },
  'openai with api: chat': { error: { type: 'server_error', code: 503, message: 'Too busy' } },
  'openai-compatible': { error: { type: 'server_error', code: 503, message: 'Too busy' } },
  anthropic: { type: 'error', error: { type: 'overloaded_error', message: 'Too busy' } },
  google: { error: { code: 503, status: 'UNAVAILABLE', message: 'Too busy' } },
};

const INVALID: Record<ModelPeer, object> = {
  openai: {
    type: 'response.failed',
    response: { error: { code: 'invalid_prompt', message: 'No such field.' } },
  },
  'openai with api: chat': { error: { type: 'invalid_request_error', message: 'No such field.' } },
  'openai-compatible': { error: { type: 'invalid_request_error', message: 'No such field.' } },
  anthropic: { type: 'error', error: { type: 'invalid_request_error', message: 'No such field.' } },
  google: { error: { code: 400, status: 'INVALID_ARGUMENT', message: 'No such field.' } },
};

/** A call of a tool, and an answer if the second request has a text. */
const loop = (first: Reply, demands: string): Reply[] => [
  { ...CALL, ...first },
  { text: SUNNY, demands },
];
const SIGNED = { extra_content: { google: { thought_signature: 'sig-1' } } };
const WITH_LOOP = { task: 'completed', calls: 2, caller: SUNNY, executed: [BERN] } as const;
const REFUSED =
  '<provider> refused the request (400): No such field. Check the settings of the agent for "<model>".';
const WRONG_URL = 'Check baseUrl of the agent: most addresses end in /v1.';

/** What a provider needs back with the next request. */
const MEMORY: readonly ModelQuirk[] = [
  {
    when: 'signs its calls of tools, and wants the signatures back (Gemini 3)',
    on: [...CHAT, 'google'],
    replies: (peer) =>
      peer === 'google'
        ? loop(
            {
              wire: each((data: Data) => {
                const [part] = data.candidates[0].content.parts;
                if (part.functionCall) part.thoughtSignature = 'sig-1';
                return data;
              }),
            },
            '"thoughtSignature":"sig-1"',
          )
        : loop(
            {
              wire: eachDelta((delta) => {
                const [call] = delta.tool_calls ?? [];
                if (call?.id) Object.assign(call, SIGNED);
                return delta;
              }),
            },
            JSON.stringify(SIGNED).slice(1, -1),
          ),
    ...WITH_LOOP,
    model: 'sig-1',
  },
  {
    when: 'sends `reasoning_details` in pieces, and wants them back (OpenRouter)',
    on: CHAT,
    replies: loop(
      {
        wire: insert(
          ...['Let me ', 'see.'].map((text) => ({
            choices: [
              {
                index: 0,
                delta: { reasoning_details: [{ type: 'reasoning.text', index: 0, text, signature: null }] },
              },
            ],
          })),
          {
            choices: [
              {
                index: 0,
                delta: {
                  reasoning_details: [
                    { type: 'reasoning.text', index: 0, signature: 'sig-2' },
                    { type: 'reasoning.encrypted', index: 1, data: 'sealed' },
                  ],
                },
              },
            ],
          },
        ),
      },
      '"reasoning_details":[{"type":"reasoning.text","index":0,"text":"Let me see.","signature":"sig-2"},' +
        '{"type":"reasoning.encrypted","index":1,"data":"sealed"}]',
    ),
    ...WITH_LOOP,
    model: 'sealed',
  },
  {
    when: 'reasons before a call of a tool, and wants its reasoning back',
    on: ['openai', ...CHAT, 'anthropic'],
    replies: (peer) =>
      loop(
        { reasoning: THOUGHT },
        peer === 'openai'
          ? '"encrypted_content":"sealed"'
          : peer === 'anthropic'
            ? '"thinking":"Let me see.","signature":"signed"'
            : '"reasoning_content":"Let me see."',
      ),
    ...WITH_LOOP,
    model: 'se',
  },
  {
    when: 'calls its reasoning `reasoning`, and takes it back under no other name',
    on: CHAT,
    replies: loop(
      {
        reasoning: THOUGHT,
        wire: eachDelta(({ reasoning_content, ...delta }) =>
          reasoning_content === undefined ? delta : { ...delta, reasoning: reasoning_content },
        ),
      },
      '"reasoning":"Let me see."',
    ),
    ...WITH_LOOP,
    model: 'Let me see.',
  },
  {
    when: 'sends its reasoning as parts of the content (Mistral)',
    on: CHAT,
    replies: loop(
      {
        reasoning: THOUGHT,
        wire: eachDelta(({ reasoning_content, ...delta }) =>
          reasoning_content === undefined
            ? delta
            : {
                ...delta,
                content: [{ type: 'thinking', thinking: [{ type: 'text', text: reasoning_content }] }],
              },
        ),
      },
      '"content":[{"type":"thinking","thinking":[{"type":"text","text":"Let me see."}]}]',
    ),
    ...WITH_LOOP,
    model: 'Let me see.',
  },
  {
    when: 'redacts its reasoning, and wants it back',
    on: ['anthropic'],
    replies: loop(
      {
        wire: insert(
          {
            type: 'content_block_start',
            index: 7,
            content_block: { type: 'redacted_thinking', data: 'sealed' },
          },
          { type: 'content_block_stop', index: 7 },
        ),
      },
      '{"type":"redacted_thinking","data":"sealed"}',
    ),
    ...WITH_LOOP,
    model: 'sealed',
  },
  {
    when: 'shows only the signature of its reasoning, and wants it back',
    on: ['anthropic'],
    replies: loop({ reasoning: [''] }, '"thinking":"","signature":"signed"'),
    ...WITH_LOOP,
    model: 'signed',
  },
];

/** Streams. */
const STREAMS: readonly ModelQuirk[] = [
  {
    when: 'sends comments between the events, to keep the connection open',
    on: ALL,
    replies: [{ ...HELLO, wire: (events) => events.flatMap((event) => [': keep-alive\n\n', event]) }],
    task: 'completed',
    calls: 1,
    caller: 'Hello.',
  },
  {
    when: 'keeps the connection open after its last event',
    on: ALL,
    config: { stall: '5s', retries: 0 },
    replies: [{ ...HELLO, open: true }],
    task: 'completed',
    calls: 1,
    caller: 'Hello.',
  },
  {
    when: 'sends its whole answer with the last event alone',
    on: ['openai'],
    replies: [{ ...HELLO, wire: (events) => [events[0]!, events.at(-1)!] }],
    task: 'completed',
    calls: 1,
    caller: 'Hello.',
  },
  {
    when: 'asks for a tool in the last event alone',
    on: ['openai'],
    replies: loop({ wire: (events) => [events[0]!, events.at(-1)!] }, 'call_1'),
    executed: [BERN],
    task: 'completed',
    calls: 2,
    caller: SUNNY,
  },
  {
    when: 'cancels its answer',
    on: ['openai'],
    replies: [
      { ...HELLO, wire: (events) => [...events.slice(0, 3), { data: { type: 'response.cancelled' } }] },
      HELLO,
    ],
    task: 'completed',
    calls: 2,
    caller: 'Hello.',
  },
  {
    when: 'keeps the connection open after the reason of its end, and leaves out usage and the last event',
    on: [...CHAT, 'anthropic'],
    config: { stall: '5s', retries: 0 },
    replies: (peer) => [
      { ...HELLO, open: true, wire: (events) => events.slice(0, peer === 'anthropic' ? -1 : -2) },
    ],
    task: 'completed',
    calls: 1,
    caller: 'Hello.',
  },
  {
    when: 'breaks the connection after the reason of its end',
    on: [...CHAT, 'anthropic'],
    replies: (peer) => [{ ...HELLO, fault: { kind: 'break', after: peer === 'anthropic' ? 7 : 5 } }],
    task: 'completed',
    calls: 1,
    caller: 'Hello.',
  },
  {
    when: 'sends `[DONE]` without a reason of its end',
    on: CHAT,
    replies: [
      { ...HELLO, wire: (events) => events.filter((event) => !dataOf(event).choices?.[0]?.finish_reason) },
    ],
    task: 'completed',
    calls: 1,
    caller: 'Hello.',
  },
  {
    when: 'breaks off in the middle of its answer',
    on: ALL,
    replies: [{ ...HELLO, fault: { kind: 'break', after: 2 } }, HELLO],
    task: 'completed',
    calls: 2,
    caller: 'Hello.',
  },
  {
    when: 'sends unknown events, and unknown parts of an answer',
    on: ALL,
    replies: (peer) => [{ ...HELLO, wire: insert(...UNKNOWN[peer]) }],
    task: 'completed',
    calls: 1,
    caller: 'Hello.',
  },
  {
    when: 'sends known members with unknown values',
    on: [...CHAT, 'anthropic', 'google'],
    replies: [
      {
        ...HELLO,
        wire: each((data: Data) => {
          if (data.choices?.[0])
            Object.assign(data.choices[0].delta, { role: 'model', annotations: [{ type: 'odd' }] });
          if (data.usage) data.usage.service = { tier: 'odd', list: [1] };
          if (data.type === 'message_delta') data.context_management = { applied_edits: [{ type: 'odd' }] };
          if (data.candidates) data.candidates[0].safetyRatings = 'odd';
          return data;
        }),
      },
    ],
    task: 'completed',
    calls: 1,
    caller: 'Hello.',
  },
  {
    when: 'sends usage without `choices` after the reason of its end',
    on: CHAT,
    replies: [
      {
        ...HELLO,
        wire: each(({ choices, ...data }: Data) => (choices?.length === 0 ? data : { ...data, choices })),
      },
    ],
    task: 'completed',
    calls: 1,
    caller: 'Hello.',
  },
  {
    when: 'sends the input of a tool as JSON and not as text',
    on: CHAT,
    replies: [
      {
        ...CALL,
        wire: (events) =>
          events
            .filter(
              (event) =>
                dataOf(event).choices?.[0]?.delta.tool_calls?.[0].id !== undefined ||
                !dataOf(event).choices?.[0]?.delta.tool_calls,
            )
            .map((event) => {
              const call = dataOf(event).choices?.[0]?.delta.tool_calls?.[0];
              if (call) call.function.arguments = BERN;
              return event;
            }),
      },
      { text: SUNNY },
    ],
    ...WITH_LOOP,
  },
];

/** Errors. */
const ERRORS: readonly ModelQuirk[] = [
  {
    when: 'answers with status 429 and Retry-After',
    on: ALL,
    replies: [{ status: 429, headers: { 'retry-after-ms': '20' } }, HELLO],
    task: 'completed',
    calls: 2,
    caller: 'Hello.',
  },
  {
    when: 'answers with status 429, and asks in the body for a wait of an hour',
    on: ['google'],
    replies: [
      {
        status: 429,
        body: {
          error: {
            code: 429,
            status: 'RESOURCE_EXHAUSTED',
            message: 'Quota exceeded.',
            details: [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: '3600s' }],
          },
        },
      },
    ],
    task: 'failed',
    calls: 1,
    caller:
      '<provider> takes no more requests for now (429): Quota exceeded. Try again later, or raise the quota of the key ' +
      '"<key>". The provider asks to wait for 3600 s.',
  },
  {
    when: 'answers with status 429 because the credit of the key is used up',
    on: ['openai', ...CHAT],
    replies: [
      {
        status: 429,
        body: { error: { code: 'insufficient_quota', type: 'insufficient_quota', message: 'Pay first.' } },
      },
    ],
    task: 'failed',
    calls: 1,
    caller:
      '<provider> has no credit left for this key (429): Pay first. Check the credit and the plan of the key "<key>".',
  },
  {
    when: 'answers with status 400 because the key is not valid',
    on: ['google'],
    replies: [
      {
        status: 400,
        body: {
          error: {
            code: 400,
            status: 'INVALID_ARGUMENT',
            message: 'API key not valid. Please pass a valid API key.',
            details: [{ '@type': 'type.googleapis.com/google.rpc.ErrorInfo', reason: 'API_KEY_INVALID' }],
          },
        },
      },
    ],
    task: 'failed',
    calls: 1,
    caller:
      '<provider> refused the key (400): API key not valid. Please pass a valid API key. Check the secret "<key>".',
  },
  {
    when: 'answers with status 402',
    on: ALL,
    replies: [{ status: 402, error: 'Pay first.' }],
    task: 'failed',
    calls: 1,
    caller:
      '<provider> has no credit left for this key (402): Pay first. Check the credit and the plan of the key "<key>".',
  },
  {
    when: 'answers with status 503',
    on: ALL,
    config: { retries: 1 },
    replies: [
      { status: 503, error: 'Too busy.' },
      { status: 503, error: 'Too busy.' },
    ],
    task: 'failed',
    calls: 2,
    caller: '<provider> failed (503): Too busy. Try again later. It was tried 2 times.',
  },
  {
    when: 'sends an error as its first event: it is overloaded',
    on: ALL,
    replies: (peer) => [only(OVERLOADED[peer]), HELLO],
    task: 'completed',
    calls: 2,
    caller: 'Hello.',
  },
  {
    when: 'sends an error as its first event: the request is invalid',
    on: ALL,
    replies: (peer) => [only(INVALID[peer])],
    task: 'failed',
    calls: 1,
    caller: REFUSED,
  },
  {
    when: 'sends an error in the middle of its answer: the request is invalid',
    on: ALL,
    replies: (peer) => [
      { ...HELLO, wire: (events) => [...events.slice(0, 2), { data: INVALID[peer] }, ...events.slice(2)] },
    ],
    task: 'failed',
    calls: 1,
    caller: REFUSED,
  },
  {
    when: 'answers with status 401',
    on: ALL,
    replies: [{ status: 401, error: 'no such key sk-ab*****wxyz.' }],
    task: 'failed',
    calls: 1,
    caller: '<provider> refused the key (401): no such key [key]. Check the secret "<key>".',
  },
  {
    when: 'answers with status 403 because of the content (OpenRouter)',
    on: ALL,
    replies: [
      {
        status: 403,
        body: {
          error: { code: 403, message: 'Your input was flagged.', metadata: { reasons: ['violence'] } },
        },
      },
    ],
    task: 'failed',
    calls: 1,
    caller:
      '<provider> refused the content of the request (403): Your input was flagged. Put the question differently.',
  },
  {
    when: 'answers with status 404: it does not know the model',
    on: ALL,
    replies: [{ status: 404, error: 'The model does not exist.' }],
    task: 'failed',
    calls: 1,
    caller:
      '<provider> does not have the model (404): The model does not exist. Check model of the agent ("<model>").',
  },
  {
    when: 'answers with status 404: no endpoint of the model takes tools (OpenRouter)',
    on: CHAT,
    replies: [
      { status: 404, body: { error: { code: 404, message: 'No endpoints found that support tool use.' } } },
    ],
    task: 'failed',
    calls: 1,
    caller:
      '<provider> does not support tools with this model (404): No endpoints found that support tool use. ' +
      'Choose another model, or remove tools and agents of the agent.',
  },
  {
    when: 'answers with status 400: the conversation is too long',
    on: ALL,
    replies: [{ status: 400, error: 'The prompt is too long: 9 tokens.' }],
    task: 'failed',
    calls: 1,
    caller:
      '<provider> takes no request of this size (400): The prompt is too long: 9 tokens. ' +
      'Lower memory of the agent, send less, or choose a model with a larger context.',
  },
  {
    when: 'answers with status 400 and `{"error": "…"}`',
    on: ALL,
    replies: [{ status: 400, body: { error: 'No such field.' } }],
    task: 'failed',
    calls: 1,
    caller: REFUSED,
  },
  {
    when: 'answers with status 400 and `{"detail": "…"}`',
    on: ALL,
    replies: [{ status: 400, body: { detail: 'No such field.' } }],
    task: 'failed',
    calls: 1,
    caller: REFUSED,
  },
  {
    when: 'answers with status 422 and a list of fields (FastAPI)',
    on: CHAT,
    replies: [{ status: 422, body: { detail: [{ loc: ['body', 'top_p'], msg: 'is too large' }] } }],
    task: 'failed',
    calls: 1,
    caller:
      '<provider> refused the request (422): body.top_p is too large. Check the settings of the agent for "<model>".',
  },
  {
    when: 'answers with status 404 and `{"detail": "Not Found"}`',
    on: ALL,
    replies: [{ status: 404, body: { detail: 'Not Found' } }],
    task: 'failed',
    calls: 1,
    caller:
      '<provider> has no such model or address (404): Not Found. Check model ("<model>") and baseUrl of the agent.',
  },
  {
    when: 'answers with status 200 and `{"error": "Unexpected endpoint …"}` (LM Studio)',
    on: ALL,
    replies: [{ body: { error: 'Unexpected endpoint or method.' } }],
    task: 'failed',
    calls: 1,
    caller: `<provider> has no such address (404): Unexpected endpoint or method. ${WRONG_URL}`,
  },
  {
    when: 'answers with status 200 and a web page',
    on: ALL,
    replies: [{ body: '<!doctype html><title>Welcome</title>' }],
    task: 'failed',
    calls: 1,
    caller: `<provider> answered with a web page (200). ${WRONG_URL}`,
  },
  {
    when: 'answers once with status 502 and the web page of a gateway',
    on: ALL,
    replies: [
      {
        status: 502,
        headers: { 'retry-after-ms': '20' },
        body: '<html><head><title>502 Bad Gateway</title></head></html>',
      },
      HELLO,
    ],
    task: 'completed',
    calls: 2,
    caller: 'Hello.',
  },
  {
    when: 'answers with status 429 and the web page of a gateway',
    on: ALL,
    config: { retries: 0 },
    replies: [{ status: 429, body: '<html><head><title>Too Many Requests</title></head></html>' }],
    task: 'failed',
    calls: 1,
    caller:
      '<provider> takes no more requests for now (429). Try again later, or raise the quota of the key "<key>".',
  },
  {
    when: 'answers with status 413 and the web page of a gateway',
    on: ALL,
    replies: [{ status: 413, body: '<html><head><title>413 Request Entity Too Large</title></head></html>' }],
    task: 'failed',
    calls: 1,
    caller: '<provider> takes no request of this size (413). Send less, or lower memory of the agent.',
  },
  {
    when: 'answers with status 200 and another document',
    on: ALL,
    replies: [{ body: { object: 'list', data: [] } }],
    task: 'failed',
    calls: 1,
    caller:
      '<provider> did not answer with a stream of events (200). ' +
      'Check baseUrl of the agent, and whether the address supports streaming.',
  },
];

export const MODEL_QUIRKS: readonly ModelQuirk[] = [...STREAMS, ...MEMORY, ...ERRORS];
