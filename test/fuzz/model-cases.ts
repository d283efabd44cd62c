import fc from 'fast-check';
import { dialectAt } from '../support/model-provider/model-provider.js';
import type { ModelRequest, ProviderEvent, Reply, ToolCall } from '../support/model-provider/reply.js';
import { hostileChanges, objectSchema } from './hostile-values.js';
import { oddText } from './junk.js';
import { type Mutation, mutate } from './mutate.js';
import { type Manner, type PeerScript, manner, sendOddly } from './odd-peer.js';

/** One llm agent and what its model answers: the answers in turn, the last one again and again. */
export interface ModelCase {
  config: object;
  answers: { reply: Reply; changes: Mutation[]; manner: Manner }[];
}

/** Each interface, with the name of a model that has it. */
const INTERFACES = [
  { model: 'openai-compatible/m', key: 'openai' },
  { model: 'openai/m', api: 'chat' },
  { model: 'openai/m', api: 'responses' },
  { model: 'anthropic/m', key: 'openai' },
  { model: 'google/m', key: 'openai' },
];
/** Short, so that models which say nothing do not hold up the run. */
const TIMES = { timeout: '4s', firstToken: '2s', stall: '1s' };

const FENCE = '```';
const ANSWERS = [
  '{"value":7}',
  '{"value":"aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa!"}',
  `${FENCE}json\n{"value":1}\n${FENCE}`,
  'null',
  '{"value":',
  '{"__proto__":{"a":1},"value":1}',
  '['.repeat(5_000),
  `${FENCE}${'\n'.repeat(50_000)}x`,
  '1e999',
  `{"value":[${'0,'.repeat(120_000)}0]}`,
  '{"value":1}{"value":2}',
  '"\\ud800"',
  'x'.repeat(2_100_000),
];
const NAMES = [
  'desk_look',
  'ask_echo',
  '',
  'constructor',
  'a'.repeat(5_000),
  'desk_look\n',
  'desk/look',
  '__proto__',
];

const text = fc.oneof(fc.constantFrom(...ANSWERS), fc.array(oddText, { maxLength: 6 }));
const call: fc.Arbitrary<ToolCall> = fc.record(
  {
    name: fc.oneof(fc.constantFrom(...NAMES), oddText),
    input: fc.oneof(fc.constantFrom<object | string>({}, '{', 'null', '[]', ...ANSWERS), oddText),
    id: fc.oneof(fc.constantFrom('call_1', '', 'a'.repeat(3_000)), oddText),
  },
  { requiredKeys: ['name', 'input'] },
);
const reply: fc.Arbitrary<Reply> = fc.record(
  {
    text,
    reasoning: text,
    calls: fc.oneof(
      { weight: 8, arbitrary: fc.array(call, { maxLength: 2 }) },
      { weight: 1, arbitrary: call.map((one) => Array.from({ length: 150 }, () => one)) },
    ),
    usage: fc.record({
      input: fc.constantFrom(0, -1, 1.5, 2 ** 53, 1e308),
      output: fc.constantFrom(0, -5, 2 ** 31),
    }),
    finish: fc.constantFrom('stop', 'stop', 'length', 'filter'),
  },
  { requiredKeys: [] },
);

export const modelCase: fc.Arbitrary<ModelCase> = fc.record({
  config: fc
    .tuple(
      fc.constantFrom(...INTERFACES),
      fc.option(objectSchema, { nil: undefined, freq: 1 }),
      fc.boolean(),
      fc.nat(1),
    )
    .map(([how, schema, hasCallees, retries]) => ({
      ...how,
      ...TIMES,
      retries,
      steps: 3,
      ...(schema !== undefined && { output: { schema } }),
      ...(hasCallees && { agents: ['echo'] }),
    })),
  answers: fc.array(fc.record({ reply, changes: hostileChanges, manner }), { minLength: 1, maxLength: 3 }),
});

/** The model of a case. */
export const modelScript =
  ({ answers }: Pick<ModelCase, 'answers'>): PeerScript =>
  async ({ path, headers, body, before }, response) => {
    const answer = answers[Math.min(before, answers.length - 1)]!;
    const dialect = dialectAt(path);
    const request = { body: body ?? {}, model: 'm', path, streamed: true } as ModelRequest;
    const events = mutate(dialect.events(answer.reply, request), answer.changes) as ProviderEvent[];
    const key = /sk-[\w-]+/.exec(JSON.stringify(headers))?.[0];
    const stream = (Array.isArray(events) ? events : [events]).map(frameOf).join('');
    await sendOddly(response, answer.manner, {
      type: 'text/event-stream',
      text: stream,
      ...(key && { key }),
    });
  };

function frameOf(event: unknown): string {
  if (typeof event !== 'object' || event === null) return `data: ${String(event)}\n\n`;
  const { event: name, data } = event as Partial<ProviderEvent>;
  const line = typeof data === 'string' ? data : JSON.stringify(data);
  return `${name === undefined ? '' : `event: ${JSON.stringify(name).slice(1, -1)}\n`}data: ${line}\n\n`;
}
