import { cpSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { DRIVER, NIGHTLY } from '../support/nightly.js';
import { shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';
import { asSystem } from '../support/tenants.js';
import { until } from '../support/until.js';

/** What the agent writes into the pipe to its worker. A text is the message itself, JSON or not. */
interface Lie {
  messages?: (string | object)[];
  /** Hexadecimal, without a frame. */
  bytes?: string;
  times?: number;
}

const BEGUN = { op: 'begin', id: 1, name: 'a', nth: 1, kind: 'run', alone: true };
const steps = (...all: unknown[]): Lie => ({ messages: all.map((step) => ({ type: 'step', step })) });
const begin = (more: object): Lie => steps({ ...BEGUN, ...more });
const asking = (kind: string, request: unknown): Lie =>
  begin({ kind, agent: 'echo', request: typeof request === 'string' ? request : JSON.stringify(request) });
const end = (more: object): Lie => steps(BEGUN, { op: 'end', id: 1, ...more });
const fail = (more: object): Lie => steps(BEGUN, { op: 'fail', id: 1, ...more });
const undo = (of: unknown): Lie => steps(BEGUN, { op: 'end', id: 1 }, { op: 'compensate', id: 0, steps: of });
const events = (events: unknown, size: unknown = 1): Lie => ({
  messages: [{ type: 'events', size, events }],
});
const returned = (more: object): Lie => ({ messages: [{ type: 'returned', ...more }] });
const other = (type: string, more: object): Lie => ({ messages: [{ type, ...more }] });

const WORKING = { statusUpdate: { status: { state: 'TASK_STATE_WORKING' } } };
const BAD_TEXT = 'a\u0000b\uD800';
const NO_NAME = { toString: 1, valueOf: 1 };

/** Entries of the journal, events and ends that are malformed, too large, out of order, or about another task. */
const lies = (theirs: string): Record<string, Lie> => ({
  'no object': { messages: ['7', '[]', '"x"', 'true'] },
  'types that every object has': { messages: [{ type: '__proto__' }, { type: 'constructor' }] },
  'events that are no list': events(7),
  'an event that is null': events([null]),
  'a status that is none': events([{ statusUpdate: 7 }]),
  'a status of no known state': events([{ statusUpdate: { status: { state: 'X', timestamp: 'never' } } }]),
  'an artifact without an id': events([{ artifactUpdate: {} }], -1e300),
  'text that Postgres cannot store': events([
    { artifactUpdate: { artifact: { artifactId: BAD_TEXT, parts: [{ text: BAD_TEXT }] } } },
  ]),
  'an event of a task of others': events([
    { statusUpdate: { taskId: theirs, contextId: theirs, status: { state: 'TASK_STATE_COMPLETED' } } },
    { artifactUpdate: { taskId: theirs, artifact: { artifactId: 'a', parts: [{ text: 'forged' }] } } },
  ]),
  'a step that is a text': steps('x'),
  'a step that does no known thing': steps({ op: 'constructor' }),
  ...Object.fromEntries(
    ['__proto__', 0, -1, 1.5, 2, 1e9].map((id) => [`a step with the id ${id}`, begin({ id })]),
  ),
  'a step of no known kind': begin({ kind: 'toString' }),
  'a step whose name Postgres cannot store': steps(
    { ...BEGUN, name: BAD_TEXT },
    { op: 'end', id: 1, result: BAD_TEXT },
  ),
  'a step that ends twice': steps(BEGUN, { op: 'end', id: 1 }, { op: 'end', id: 1 }),
  'a step that begins again after its end': steps(BEGUN, { op: 'end', id: 1 }, BEGUN),
  'the end of no step': steps({ op: 'end', id: 1 }, BEGUN),
  'a result that is too large': end({ result: 'x'.repeat(300_000) }),
  'a result that is no text': end({ result: { a: 1 } }),
  'a result that is no JSON': end({ result: '{' }),
  'a decision that is none': end({ decision: 'toString' }),
  'an error that is none': fail({ error: null }),
  'an error without a text': fail({ error: { name: NO_NAME, message: NO_NAME } }),
  'an error that Postgres cannot store': fail({ error: { message: BAD_TEXT, data: { a: BAD_TEXT } } }),
  'a pause that is no number': fail({ error: {}, retryMs: 'soon' }),
  'a question of a step that cannot ask': steps(BEGUN, { op: 'ask', id: 1 }),
  'steps to undo that are no list': undo('x'),
  'steps to undo that never began': undo([null, 1e9]),
  'a call of an agent that is no JSON': asking('agent', '{'),
  'a call of an agent that is null': asking('agent', 'null'),
  'a call about a task of others': asking('agent', { message: 'yes', taskId: theirs }),
  'a state that is no JSON': asking('state', '{'),
  'a state whose key Postgres cannot store': asking('state', { key: BAD_TEXT, value: '1' }),
  'a state whose value is no JSON': asking('state', { key: 'a', value: '{' }),
  'a call of a model that is null': asking('model', 'null'),
  'a call of a tool that is no JSON': asking('tool', '{'),
  'a sleep without an end': begin({ kind: 'sleep', ms: 1e308 }),
  'a wait that is over before it begins': begin({ kind: 'input', ms: -1 }),
  'a wait for nothing': returned({ parked: {} }),
  'a wait of no time': returned({ parked: { wakeInMs: 'x' } }),
  'a question of no step': returned({ parked: { input: { id: 9, question: 'x' } } }),
  'a question that is a number': returned({ parked: { input: 7 } }),
  'a next state that is a number': returned({ parked: { continueAs: 7 } }),
  'a mismatch that is an object': returned({ mismatch: {} }),
  'an end with an error that is a number': returned({ error: 7 }),
  'an end with an error that Postgres cannot store': returned({
    error: { name: BAD_TEXT, message: BAD_TEXT },
  }),
  'two ends': { messages: [{ type: 'finished' }, { type: 'finished' }, { type: 'returned' }, WORKING] },
  'a line of no known level': other('line', { level: 'constructor', text: 'x' }),
  'a line that Postgres cannot store': other('line', { level: 'info', text: BAD_TEXT }),
  'the name of a secret that is an object': other('secret', { id: {}, name: NO_NAME }),
  'tools in the middle of a turn': other('loaded', { tools: 7, error: null }),
  'a module that has failed in the middle of a turn': other('loaded', { error: { name: 1 }, fault: 7 }),
});

/** What no worker can read on after. */
const UNREADABLE: Record<string, Lie> = {
  'no JSON': { messages: ['x{'] },
  null: { messages: ['null'] },
  'a length of 4 GiB': { bytes: 'ffffffff' },
  'a line that is an object': other('line', { level: {}, text: {} }),
};

const HOSTILE_AGENTS = join(__dirname, '../hostile-agents');
// A run whose process has ended is looked at after half of a lease.
// A process may have sent as much again as its largest event before it is ended.
const startStack = shareStack(
  DRIVER,
  { ...CRASH_SETTINGS, MAX_EVENT_BYTES: '1000000' },
  {
    installAgents: (agents) => {
      for (const name of ['liar', 'answer.mjs'])
        cpSync(join(HOSTILE_AGENTS, name), join(agents, name), { recursive: true });
    },
  },
);

describe('code of an agent that writes to its worker past the library of Baton', () => {
  let stack: Stack;
  let liar: RawCaller;
  let echo: RawCaller;
  let theirs: string;

  beforeAll(async () => {
    stack = await startStack();
    const [mine, other] = [await stack.createTenant(), await stack.createTenant()];
    liar = new RawCaller(stack.url(0, 'liar'), mine.token);
    echo = new RawCaller(stack.url(0), other.token);
    const asked = await echo.call('SendMessage', sendParams('secret of others', ASKING));
    expect(asked.result!.task.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    theirs = asked.result!.task.id as string;
  });

  const tell = (lie: Lie) => liar.call('SendMessage', sendParams(JSON.stringify(lie)));

  /** If the worker had ended, the test would fail (baton-process.ts). */
  async function expectOthersServed(): Promise<void> {
    const { result } = await echo.call('SendMessage', sendParams('hi'));
    expect(result!.task.status.state).toBe('TASK_STATE_COMPLETED');
  }

  it('fails its own task at most, and writes into no other one', async () => {
    const read = async () => JSON.stringify((await echo.call('GetTask', { id: theirs })).result);
    const before = await read();
    for (const [name, lie] of Object.entries(lies(theirs))) {
      const answer = await tell(lie);
      const ended = answer.result?.task.status.state ?? answer.error?.message;
      // The answer of a blocking send says that the turn is over.
      expect([name, ended]).toEqual([
        name,
        expect.stringMatching(/^(TASK_STATE_(COMPLETED|FAILED)|The agent stopped with an error)/),
      ]);
      expect(JSON.stringify(answer)).not.toContain('secret of others');
    }
    expect(await read()).toBe(before);
    await expectOthersServed();
  });

  it.each(Object.entries(UNREADABLE))('ends its process and no worker: %s', async (_, lie) => {
    expect((await tell(lie)).result!.task.status.state).toBe('TASK_STATE_FAILED');
    await logged('sent an unreadable message');
    await expectOthersServed();
    // A new process has its next turn.
    expect((await tell({})).result!.task.status.state).toBe('TASK_STATE_COMPLETED');
  });

  // The journal of an imported tenant may be anything.
  it('or whose stored journal no runtime has written fails its own task at most', async () => {
    const asking = steps({ ...BEGUN, kind: 'input' });
    const question = { type: 'returned', parked: { input: { id: 1, question: [{ text: 'May I?' }] } } };
    const head = { execution: 1, id: 1, at: 'now', head: 1 };
    const begun = { ...head, event: 'begun', name: 'a', nth: 1, kind: 'input', alone: true, start: 0 };
    const values = [null, [], 0, BAD_TEXT.replace('\u0000', ''), { deep: 1 }, [[1]], '__proto__', -1, 1e9];
    // By day each member has one of the values.
    const valuesOf = (n: number) => (NIGHTLY ? values : [values[n % values.length]]);
    const journals = [
      ...values.map((value) => [value]),
      ...Object.keys(begun).flatMap((name, n) => valuesOf(n).map((value) => [{ ...begun, [name]: value }])),
      ...[
        'called',
        'asked',
        'answered',
        'ended',
        'remote',
        'sent',
        'compensating',
        'continued',
        'posed',
      ].flatMap((event) => [
        [begun, { ...head, event }],
        [{ ...head, event }, begun],
        [{ ...head, event, id: -1 }, begun],
      ]),
      // Each entry twice, and the end before the beginning.
      [begun, begun, { ...head, event: 'ended', result: '{' }, { ...head, event: 'ended' }, begun],
    ];
    // Code that only ended would park the run: it does not fit its steps.
    const failing = JSON.stringify(returned({ error: { name: 'Error', message: 'failed' } }));
    for (const journal of journals) {
      const asked = await tell({ messages: [...asking.messages!, question] });
      // The log of the worker has the reason.
      expect([journal, asked.error && newLines()]).toEqual([journal, undefined]);
      const { id: taskId, status } = asked.result!.task;
      expect(status.state).toBe('TASK_STATE_INPUT_REQUIRED');
      await store(taskId as string, journal);
      const answer = await liar.call('SendMessage', sendParams(failing, { taskId: taskId as string }));
      const ended = answer.result?.task.status.state ?? answer.error?.message;
      expect([JSON.stringify(journal), ended]).toEqual([
        JSON.stringify(journal),
        expect.stringMatching(
          /^(TASK_STATE_(COMPLETED|FAILED|INPUT_REQUIRED)|The agent stopped with an error)/,
        ),
      ]);
    }
    // An error that belongs to no turn is blamed on the one that runs then.
    expect(newLines()).not.toContain('uncaught error in agent');
    await expectOthersServed();
  });

  /** Replaces the journal of a task. */
  async function store(taskId: string, entries: readonly unknown[]): Promise<void> {
    const { url } = stack.database;
    await asSystem(url, 'DELETE FROM turn_journal WHERE task_id = $1', [taskId]);
    await asSystem(
      url,
      `INSERT INTO turn_journal (tenant_id, task_id, position, run_id, attempt, value)
       SELECT run.tenant_id, run.task_id, entry.n, run.id, 1, entry.value
       FROM (SELECT * FROM runs WHERE task_id = $1 LIMIT 1) run,
            json_array_elements($2::json) WITH ORDINALITY AS entry(value, n)`,
      [taskId, JSON.stringify(entries)],
    );
  }

  it('does not fill the memory of its worker with events that it does not wait for', async () => {
    const parts = [{ text: 'x'.repeat(500_000) }];
    const message = { messageId: 'm', role: 'ROLE_AGENT', parts };
    const large = { statusUpdate: { status: { state: 'TASK_STATE_WORKING', message } } };
    // 2 GB each: as many as the turn reads, and to a turn that there is not.
    for (const lie of [
      { times: 4_000, ...events([large]) },
      { times: 4_000, messages: [{ type: 'events', turn: 99, size: 1, events: [large] }] },
    ]) {
      const most = memoryMb() + 250;
      const state = { isOver: false };
      const answer = tell(lie).finally(() => (state.isOver = true));
      while (!state.isOver) {
        expect(memoryMb()).toBeLessThan(most);
        await delay(50);
      }
      expect((await answer).result!.task.status.state).toBe('TASK_STATE_FAILED');
      await logged('without waiting until they were read');
      await expectOthersServed();
    }
  });

  const memoryMb = (): number => {
    if (process.platform !== 'linux') return 0;
    const status = readFileSync(`/proc/${stack.workers[0]!.pid}/status`, 'utf8');
    return Number(/VmRSS:\s+(\d+)/.exec(status)?.[1]) / 1024;
  };

  let seen = 0;
  /** What the worker has logged since the last look. */
  function newLines(): string {
    const log = stack.workers[0]!.log();
    const lines = log.slice(seen);
    seen = log.length;
    return lines;
  }
  /** Waits for a new line: an answer may be faster than the log, which comes through a pipe. */
  const logged = (text: string) => until(() => newLines().includes(text));
});

/** `echo` asks. */
const ASKING = { metadata: { echo: { askInput: true } } };
