import fc from 'fast-check';
import {
  type Codec,
  type EventPayload,
  type Message,
  PROFILES,
  type Part,
  type Profile,
  ProtocolError,
  Role,
  type StreamItem,
  type Task,
  TaskState,
} from '../../libs/a2a/src/index.js';
import type { Finding, Outcome } from './finding.js';
import { junk, oddText } from './junk.js';
import { type Mutation, mutate, mutations } from './mutate.js';
import { callsOf } from './requests.js';

/** What is made at a time; a case depends on the seed and its number alone. */
const BATCH = 500;
const known = { taskIds: ['t-1', 't-2', 't-3'], contextId: 'c-1' };
const calls = callsOf(known);
/** Each profile with each call that it has a codec for. */
const spoken = Object.values(PROFILES).flatMap((profile: Profile) =>
  calls.flatMap((call) => {
    const codec = profile.codecFor(call[0]);
    return codec ? [{ profile, codec, call }] : [];
  }),
);

const STATES = Object.values(TaskState).filter((state) => typeof state === 'number');

interface CodecCase {
  spoken: { profile: Profile; codec: Codec; call: [method: string, params: object] };
  changes: Mutation[];
  arbitrary: unknown;
  events: EventPayload[];
}

const part: fc.Arbitrary<Part> = fc.record({
  content: fc.oneof(
    fc.record({ $case: fc.constant('text' as const), value: oddText }),
    fc.record({ $case: fc.constant('data' as const), value: fc.jsonValue() }),
    fc.record({ $case: fc.constant('url' as const), value: oddText }),
    fc.record({
      $case: fc.constant('raw' as const),
      value: fc.uint8Array().map((bytes) => Buffer.from(bytes)),
    }),
    fc.constant(undefined),
  ),
  metadata: fc.constantFrom(undefined, { a: 1 }),
  filename: oddText,
  mediaType: oddText,
});
const parts = fc.array(part, { maxLength: 3 });
const message: fc.Arbitrary<Message> = fc.record({
  messageId: oddText,
  contextId: oddText,
  taskId: oddText,
  role: fc.constantFrom(Role.ROLE_USER, Role.ROLE_AGENT, Role.ROLE_UNSPECIFIED),
  parts,
  metadata: fc.constantFrom(undefined, { a: [null] }),
  extensions: fc.array(oddText, { maxLength: 2 }),
  referenceTaskIds: fc.array(oddText, { maxLength: 2 }),
});
const status = fc.option(
  fc.record({
    state: fc.constantFrom(...STATES),
    message: fc.option(message, { nil: undefined }),
    timestamp: fc.constantFrom(undefined, '2026-01-31T12:00:00.000Z'),
  }),
  { nil: undefined },
);
const artifact = fc.record({
  artifactId: fc.oneof(fc.constantFrom('a', 'b'), oddText),
  name: oddText,
  description: oddText,
  parts,
  metadata: fc.constantFrom(undefined, { a: 1 }),
  extensions: fc.array(oddText, { maxLength: 1 }),
});
const ids = { taskId: fc.constant('t-1'), contextId: fc.constant('c-1'), metadata: fc.constant(undefined) };
const payload: fc.Arbitrary<EventPayload> = fc.oneof(
  fc.record({
    $case: fc.constant('task' as const),
    value: fc.record({
      id: fc.constant('t-1'),
      contextId: oddText,
      status,
      artifacts: fc.array(artifact, { maxLength: 2 }),
      history: fc.array(message, { maxLength: 2 }),
      metadata: fc.constantFrom(undefined, { a: 1 }),
    }),
  }),
  fc.record({ $case: fc.constant('statusUpdate' as const), value: fc.record({ ...ids, status }) }),
  fc.record({
    $case: fc.constant('artifactUpdate' as const),
    value: fc.record({ ...ids, artifact, append: fc.boolean(), lastChunk: fc.boolean() }),
  }),
);

const codecCase: fc.Arbitrary<CodecCase> = fc.record({
  spoken: fc.constantFrom(...spoken),
  changes: mutations,
  arbitrary: fc.option(junk, { nil: undefined, freq: 6 }),
  events: fc.array(payload, { maxLength: 5 }),
});

/** Every codec of every profile, on requests that are almost right and on events in any order. */
export function fuzzCodecs(cases: number, seed: number): Outcome {
  const findings: Finding[] = [];
  for (let from = 0; from < cases; from += BATCH) {
    const batch = fc.sample(codecCase, { numRuns: Math.min(BATCH, cases - from), seed: seed + from });
    for (const [i, one] of batch.entries()) {
      const problem = tryCodec(one);
      if (problem) findings.push({ part: 'codec', number: from + i, problem, input: shown(one) });
    }
  }
  return { findings, answered: cases };
}

const shown = ({ spoken: { profile, call }, ...rest }: CodecCase): string =>
  JSON.stringify({ profile: profile.name, call, ...rest }).slice(0, 2_000);

function tryCodec({ spoken: drawn, changes, arbitrary, events }: CodecCase): string | undefined {
  const {
    codec,
    call: [method, params],
  } = drawn;
  try {
    decodeAndEncode(codec, method, arbitrary ?? mutate(params, changes));
  } catch (error) {
    if (!(error instanceof ProtocolError)) return `decode threw ${String(error)}`;
    if (error.message === '') return 'refused without a reason';
  }
  try {
    encodeAll(codec, events);
  } catch (error) {
    return `encode threw ${String(error)}`;
  }
  return undefined;
}

/** What can be decoded can be shown again. Throws ProtocolError if it cannot be decoded; anything else is a bug. */
function decodeAndEncode(codec: Codec, method: string, params: unknown): void {
  const call = codec.decode(method, params);
  if (!('message' in call.request)) return;
  const value = taskOf(call.request.message);
  try {
    JSON.stringify(codec.encodeResult('sendMessage', { $case: 'task', value }));
    encodeAll(codec, [{ $case: 'task', value }]);
  } catch (error) {
    throw new Error(`what was decoded cannot be encoded: ${String(error)}`, { cause: error });
  }
}

function encodeAll(codec: Codec, events: EventPayload[]): void {
  const encode = codec.streamEncoder({ agentId: 'echo' });
  let last = 0;
  for (const [i, event] of events.entries()) {
    const item: StreamItem = { sequence: i + 1, payload: event };
    for (const { sequence, result } of encode(item)) {
      if (sequence < last) throw new Error(`frame ${sequence} comes after ${last}`);
      last = sequence;
      JSON.stringify(result);
    }
    JSON.stringify(codec.encodeItem(item));
  }
}

const taskOf = (said: Message | undefined): Task => ({
  id: 't-1',
  contextId: 'c-1',
  status: {
    state: TaskState.TASK_STATE_SUBMITTED,
    message: undefined,
    timestamp: '2026-01-31T12:00:00.000Z',
  },
  artifacts: [],
  history: said ? [said] : [],
  metadata: undefined,
});
