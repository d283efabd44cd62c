import fc from 'fast-check';
import type { ServerResponse } from 'node:http';
import { hostileChanges } from './hostile-values.js';
import { type Mutation, mutate } from './mutate.js';
import { type Manner, type PeerRequest, type PeerScript, manner, sendOddly } from './odd-peer.js';

type Version = '1.0' | '0.3';
const VERSIONS = ['1.0', '0.3'] as const;

/** What is done to the frames of a recorded stream. */
interface Shuffle {
  act: 'cut' | 'double' | 'swap' | 'drop' | 'mix';
  /** Which frame, and where in it or with which other one; counted over all of them. */
  at: number;
  to: number;
}

const OPERATIONS = ['card', 'send', 'get', 'subscribe'] as const;
type Operation = (typeof OPERATIONS)[number];

/** A remote agent that is odd at one of its operations. */
export interface RemoteCase {
  version: Version;
  streaming: boolean;
  operation: Operation;
  shuffles: Shuffle[];
  changes: Mutation[];
  manner: Manner;
  /** Whether its stream ends before the task has ended, so that it is read and subscribed to. */
  breaksOff: boolean;
}

export const remoteCase: fc.Arbitrary<RemoteCase> = fc.record({
  version: fc.constantFrom(...VERSIONS),
  streaming: fc.boolean(),
  operation: fc.constantFrom(...OPERATIONS, 'send', 'send', 'send'),
  shuffles: fc.array(
    fc.record({
      act: fc.constantFrom('cut', 'double', 'swap', 'drop', 'mix'),
      at: fc.nat(10_000),
      to: fc.nat(10_000),
    }),
    { maxLength: 3 },
  ),
  changes: hostileChanges,
  manner,
  breaksOff: fc.boolean(),
});

/** The settings of its agent: short, so that a silent peer does not hold up the run. */
export const remoteConfig = (base: string, secret: string): object => ({
  card: `${base}/card.json`,
  headers: { authorization: { secret, prefix: 'Bearer ' } },
  timeout: '8s',
  stall: '2s',
  reconnect: '1s',
});

/** Manners of a whole answer: the message has arrived, whatever the answer is, and must not come again. */
const WHOLE: ReadonlySet<Manner['kind']> = new Set<Manner['kind']>([
  'plain',
  'pieces',
  'crlf',
  'joined',
  'cut',
  'noise',
  'type',
  'empty',
  'headers',
]);

/** What a case has seen: how often the message came after it had been answered. */
export interface Counted {
  again: number;
}

const METHODS: Record<string, Operation | 'cancel'> = {
  SendStreamingMessage: 'send',
  'message/stream': 'send',
  SendMessage: 'send',
  'message/send': 'send',
  GetTask: 'get',
  'tasks/get': 'get',
  SubscribeToTask: 'subscribe',
  'tasks/resubscribe': 'subscribe',
};

/**
 * The agent of a case.
 * @param base the URL of its paths
 */
export function remoteScript(one: RemoteCase, counted: Counted, base: () => string): PeerScript {
  let isAnswered = false;
  return async (request, response) => {
    const { id, method = '' } = (request.body ?? {}) as { id?: unknown; method?: string };
    const operation = request.method === 'GET' ? 'card' : (METHODS[method] ?? 'cancel');
    const isOdd = operation === one.operation;
    if (operation === 'send') {
      if (isAnswered) counted.again += 1;
      isAnswered ||= !isOdd || WHOLE.has(one.manner.kind);
    }
    const isStream = /stream|subscribe/i.test(method);
    const text = isStream
      ? streamOf(one, id, isOdd)
      : JSON.stringify(changed(answerOf(one, base(), operation, id), one, isOdd)) || '';
    await answer(one, { isOdd, isStream, text, request }, response);
  };
}

async function answer(
  { manner: odd }: RemoteCase,
  {
    isOdd,
    isStream,
    text,
    request,
  }: { isOdd: boolean; isStream: boolean; text: string; request: PeerRequest },
  response: ServerResponse,
): Promise<void> {
  const key = /sk-[\w-]+/.exec(JSON.stringify(request.headers))?.[0];
  const type = isStream ? 'text/event-stream' : 'application/json';
  const how: Manner = isOdd ? odd : { kind: 'plain', at: 0 };
  await sendOddly(response, how, { type, text, ...(key && { key }) });
}

const changed = (value: object, { changes }: RemoteCase, isOdd: boolean): unknown =>
  isOdd ? mutate(value, changes) : value;

/** A recorded stream, with the frames and bytes of the case out of order. */
function streamOf(one: RemoteCase, id: unknown, isOdd: boolean): string {
  const recorded = eventsOf(one.version, one.breaksOff);
  const envelopes = recorded.map((result) => changed({ jsonrpc: '2.0', id, result }, one, isOdd));
  let frames = envelopes.map((envelope) => `data: ${JSON.stringify(envelope)}\n\n`);
  if (!isOdd) return frames.join('');
  const other = one.version === '1.0' ? '0.3' : '1.0';
  const strange = eventsOf(other, false).map(
    (result) => `data: ${JSON.stringify({ jsonrpc: '2.0', id, result })}\n\n`,
  );
  for (const shuffle of one.shuffles) frames = shuffled(frames, shuffle, strange);
  return frames.join('');
}

function shuffled(frames: string[], { act, at, to }: Shuffle, strange: readonly string[]): string[] {
  if (frames.length === 0) return frames;
  const i = at % frames.length;
  const frame = frames[i]!;
  const j = to % frames.length;
  const rest = (replaced: string[]): string[] => [...frames.slice(0, i), ...replaced, ...frames.slice(i + 1)];
  switch (act) {
    case 'cut':
      return rest([frame.slice(0, to % frame.length)]);
    case 'double':
      return rest([frame, frame]);
    case 'swap':
      return frames.map((each, n) => (n === i ? frames[j]! : n === j ? frame : each));
    case 'drop':
      return rest([]);
    case 'mix':
      return rest([frame, strange[to % strange.length]!]);
  }
}

const IDS = { taskId: 'theirs', contextId: 'their context' };

function eventsOf(version: Version, breaksOff: boolean): object[] {
  const chunks = ['one ', 'two ', 'three'].map((text, i) => chunkOf(version, text, i > 0, i === 2));
  const all = [
    taskOf(version, 'working'),
    statusOf(version, 'working'),
    ...chunks,
    statusOf(version, 'completed'),
  ];
  return breaksOff ? all.slice(0, 4) : all;
}

const stateOf = (version: Version, state: string): string =>
  version === '1.0' ? `TASK_STATE_${state.toUpperCase()}` : state;

function taskOf(version: Version, state: string): object {
  const isOver = state === 'completed';
  const part = version === '1.0' ? { text: 'one two three' } : { kind: 'text', text: 'one two three' };
  const task = {
    id: IDS.taskId,
    contextId: IDS.contextId,
    status: { state: stateOf(version, state) },
    ...(isOver && { artifacts: [{ artifactId: 'a', parts: [part] }] }),
  };
  return version === '1.0' ? { task } : { kind: 'task', ...task };
}

function statusOf(version: Version, state: string): object {
  const update = { ...IDS, status: { state: stateOf(version, state) } };
  return version === '1.0'
    ? { statusUpdate: update }
    : { kind: 'status-update', final: state === 'completed', ...update };
}

function chunkOf(version: Version, text: string, append: boolean, lastChunk: boolean): object {
  const part = version === '1.0' ? { text } : { kind: 'text', text };
  const update = { ...IDS, artifact: { artifactId: 'a', parts: [part] }, append, lastChunk };
  return version === '1.0' ? { artifactUpdate: update } : { kind: 'artifact-update', ...update };
}

/** The plain answer to an operation. */
function answerOf(one: RemoteCase, base: string, operation: string, id: unknown): object {
  const { version } = one;
  if (operation === 'card') return cardOf(one, `${base}/a2a`);
  const wrapped = taskOf(version, operation === 'send' ? 'working' : 'completed');
  const isBare = version === '1.0' && operation !== 'send';
  return { jsonrpc: '2.0', id, result: isBare ? (wrapped as { task: object }).task : wrapped };
}

function cardOf({ version, streaming }: RemoteCase, url: string): object {
  const about = {
    name: 'Odd',
    description: 'Odd',
    version: '1',
    capabilities: { streaming },
    defaultInputModes: ['text/plain'],
    defaultOutputModes: ['text/plain'],
    skills: [],
  };
  return version === '1.0'
    ? { ...about, supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }] }
    : { ...about, protocolVersion: '0.3.0', url, preferredTransport: 'JSONRPC' };
}
