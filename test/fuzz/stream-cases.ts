import fc from 'fast-check';
import { anthropic } from '../support/model-provider/anthropic.js';
import { google } from '../support/model-provider/google.js';
import { openaiChat } from '../support/model-provider/openai-chat.js';
import { openaiResponses } from '../support/model-provider/openai-responses.js';
import type { Dialect, ModelRequest, ProviderEvent, Reply } from '../support/model-provider/reply.js';

/** Each interface, with the settings of an agent that uses it. */
const INTERFACES = [
  { dialect: openaiChat, config: { model: 'openai-compatible/m', key: 'mine' } },
  { dialect: openaiChat, config: { model: 'openai/gpt-5-mini', api: 'chat' } },
  { dialect: openaiResponses, config: { model: 'openai/gpt-5-mini' } },
  { dialect: anthropic, config: { model: 'anthropic/claude-sonnet-4-5' } },
  { dialect: google, config: { model: 'google/gemini-2.5-flash' } },
] as const;

/** The answer of the model of a recording. No two of its pieces of a tool's input make another JSON. */
const RECORDED: readonly Reply[] = [
  { text: ['It is ', 'sunny.'], usage: { input: 3, output: 4 } },
  { reasoning: ['Let me ', 'see.'], text: ['I ask.'], calls: [{ name: 'weather', input: { city: 'Bern' } }] },
  {
    calls: [
      { name: 'weather', input: { city: 'Oslo' } },
      { name: 'weather', input: { city: 'Rome' } },
    ],
  },
  { text: ['Cut ', 'off'], finish: 'length' },
];

/** The inputs that a recording has. */
export const SAID: readonly string[] = RECORDED.flatMap(({ calls = [] }) =>
  calls.map(({ input }) => JSON.stringify(input)),
);

/** What is done to the events of a recording, and at which of them. */
interface Damage {
  act: 'double' | 'swap' | 'mix' | 'repeat';
  at: number;
  to: number;
}

/** One answer, and the agent that gets it. */
export interface StreamCase {
  config: object;
  /** The bytes of the answer. */
  text: string;
  /** A call may be apart from its input. Then it looks like one without input. */
  mayBeEmpty: boolean;
  /** The connection stays open after them. */
  isOpen: boolean;
}

const damage: fc.Arbitrary<Damage> = fc.record({
  act: fc.constantFrom('double', 'swap', 'mix', 'repeat'),
  at: fc.nat(60),
  to: fc.nat(60),
});

export const streamCase: fc.Arbitrary<StreamCase> = fc
  .record({
    by: fc.constantFrom(...INTERFACES),
    other: fc.constantFrom(...INTERFACES),
    first: fc.constantFrom(...RECORDED),
    second: fc.constantFrom(...RECORDED),
    damages: fc.array(damage, { maxLength: 3 }),
    /** How much of the bytes is sent, in thousandths. Most often all. */
    part: fc.oneof({ weight: 2, arbitrary: fc.constant(1_000) }, { weight: 1, arbitrary: fc.nat(1_000) }),
    isOpen: fc.boolean(),
  })
  .map(({ by, other, first, second, damages, part, isOpen }) => {
    const events = damages.reduce(
      (before, each) => damaged(before, each, eventsOf(other.dialect, second)),
      eventsOf(by.dialect, first),
    );
    const bytes = Buffer.from(events.map(frameOf).join(''));
    const text = bytes.subarray(0, Math.ceil((bytes.length * part) / 1_000)).toString('latin1');
    const mayBeEmpty = damages.some(({ act }) => act === 'mix' || act === 'swap');
    return { config: by.config, text, mayBeEmpty, isOpen };
  });

const eventsOf = (dialect: Dialect, reply: Reply): ProviderEvent[] =>
  dialect.events(reply, { model: 'm', body: { stream_options: {} } } as ModelRequest);

function damaged(
  events: readonly ProviderEvent[],
  { act, at, to }: Damage,
  others: readonly ProviderEvent[],
): ProviderEvent[] {
  const changed = [...events];
  const from = at % changed.length;
  const into = to % changed.length;
  const event = changed[from]!;
  if (act === 'double') changed.splice(from, 0, event);
  else if (act === 'repeat') changed.push(...events);
  else if (act === 'swap') [changed[from], changed[into]] = [changed[into]!, event];
  else changed.splice(from, 0, ...others.slice(0, into + 1));
  return changed;
}

const frameOf = ({ event, data }: ProviderEvent): string =>
  `${event ? `event: ${event}\n` : ''}data: ${typeof data === 'string' ? data : JSON.stringify(data)}\n\n`;
