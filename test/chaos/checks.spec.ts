import { check, type Defect } from './checks/index.js';
import type {
  CodeRecord,
  FaultRecord,
  Frame,
  LedgerEntry,
  Observations,
  OddAnswer,
  Said,
  McpOutcome,
  McpRecord,
  McpTaskRecord,
  ScheduleRecord,
  VersionRecord,
} from './observations.js';
import { MARK, observed, OTHER_MARK, soundEcho, soundScribe } from './observations.fixture.js';
import { recoveryOf } from './recovery.js';

const defectsOf = (observations: Observations): Defect[] => [
  ...new Set([...check(observations)].map(({ defect }) => defect)),
];

/** A sound run with one thing changed. */
function planted(change: (sound: ReturnType<typeof soundEcho>) => void, sound = soundEcho()): Defect[] {
  change(sound);
  return defectsOf(observed(sound));
}

const swap = (frames: Frame[], a: number, b: number): void => {
  [frames[a], frames[b]] = [frames[b]!, frames[a]!];
};
const reword = (frame: Frame, said: Said): Frame => ({ ...frame, said, raw: JSON.stringify(said) });
const status = (state: string): Said => ({ kind: 'status', taskId: 't', state });

describe('the checks find nothing in', () => {
  it('a task whose worker died once', () => {
    expect(defectsOf(observed(soundEcho()))).toEqual([]);
  });

  it('a task of several turns', () => {
    expect(defectsOf(observed(soundScribe()))).toEqual([]);
  });

  it('a task that was canceled in the middle', () => {
    const sound = soundEcho();
    const { record, stored } = sound;
    stored.log.splice(6, 3, reword({ ...stored.log[6]! }, status('canceled')));
    stored.attempts = [0, 1, 1, 1, 2, 2, 0];
    stored.snapshot.state = 'canceled';
    stored.snapshot.artifacts['echo-1']!.length = 2;
    record.cancel = 'done';
    record.answeredStates = ['canceled'];
    for (const viewer of record.viewers) viewer.frames = [...stored.log];
    expect(defectsOf(observed(sound))).toEqual([]);
  });
});

describe('the checks find', () => {
  const log = (act: (frames: Frame[]) => void) => planted(({ stored }) => act(stored.log));
  const viewer = (n: number, act: (frames: Frame[]) => void) =>
    planted(({ record }) => act(record.viewers[n]!.frames));

  it('an event that is missing in a log', () => {
    expect(log((frames) => frames.splice(5, 1))).toContain('lost');
  });
  it('an event that stands in a log twice', () => {
    expect(log((frames) => frames.splice(5, 0, frames[5]!))).toContain('doubled');
  });
  it('events of a log that are out of order', () => {
    expect(log((frames) => swap(frames, 5, 6))).toContain('reordered');
  });
  it('the end of a log that callers do not get', () => {
    expect(planted(({ stored }) => stored.attempts.push(2))).toContain('afterTerminal');
    expect(log((frames) => frames.pop())).toContain('lost');
  });
  it('an event after the end', () => {
    const late = (frames: Frame[]) => frames.push({ ...frames[5]!, sequence: 10 });
    expect(log(late)).toContain('afterTerminal');
    expect(viewer(0, late)).toContain('afterTerminal');
  });

  it.each([
    ['its sender', 0],
    ['another reader', 1],
  ])('an event that %s never got', (_, n) => {
    expect(viewer(n, (frames) => frames.splice(4, 1))).toEqual(['lost']);
  });
  it.each([
    ['its sender', 0],
    ['another reader', 1],
  ])('an event that %s got twice', (_, n) => {
    expect(viewer(n, (frames) => frames.splice(7, 0, frames[4]!))).toEqual(['doubled']);
  });
  it('events that a reader got out of order', () => {
    expect(viewer(1, (frames) => swap(frames, 4, 5))).toEqual(['reordered']);
  });
  it('the first event that a resumed reader never got', () => {
    expect(viewer(1, (frames) => frames.shift())).toEqual(['lost']);
  });
  it('a stream that its reader believes to be over, and which is not', () => {
    expect(viewer(1, (frames) => frames.pop())).toEqual(['lost']);
  });
  it('a frame that is not the event of the log', () => {
    const other = (frames: Frame[]) => (frames[4] = reword(frames[4]!, status('working')));
    expect(viewer(1, other)).toEqual(['wrong']);
  });
  it('a snapshot that is not the log up to its sequence', () => {
    const change = (artifacts: Record<string, string[]>, state = 'working') =>
      planted(({ record }) => {
        const frames = record.viewers[0]!.frames.slice(3);
        frames[0] = reword(frames[0]!, { kind: 'task', taskId: 't', state, artifacts, history: [] });
        record.viewers[0]!.frames = frames;
      });
    const text = `${MARK} hello`;
    expect(change({ 'echo-1': [text, text] })).toEqual([]);
    expect(change({ 'echo-1': [text] })).toEqual(['wrong']);
    expect(change({ 'echo-1': [text, text] }, 'submitted')).toEqual(['wrong']);
  });

  it.each<[string, Defect, (chunks: string[]) => unknown]>([
    ['too little', 'lost', (chunks) => chunks.pop()],
    ['too much', 'doubled', (chunks) => chunks.push(chunks[0]!)],
    ['something else', 'wrong', (chunks) => (chunks[2] = 'hullo')],
  ])('an artifact that says %s, though log and task agree', (_, defect, act) => {
    const found = planted(({ record, stored }) => {
      act(stored.snapshot.artifacts['echo-1']!);
      const { artifacts } = stored.snapshot;
      const whole: Said = { kind: 'artifact', taskId: 't', artifactId: 'echo-1', append: false, texts: [] };
      const last = reword(stored.log[7]!, { ...whole, texts: artifacts['echo-1']! });
      stored.log[7] = last;
      for (const { frames } of record.viewers) frames[7] = last;
    });
    expect(found).toContain(defect);
  });
  it('a task that differs from its log, though no client drove it', () => {
    const found = (act: (sound: ReturnType<typeof soundEcho>) => unknown) => {
      const sound = soundEcho();
      act(sound);
      return defectsOf(observed(sound, { records: [] }));
    };
    expect(found(({ stored }) => (stored.snapshot.state = 'failed'))).toEqual(['wrong']);
    expect(found(({ stored }) => stored.snapshot.artifacts['echo-1']!.pop())).toEqual(['wrong']);
    // The chunk that replaces what was there is not the first of its attempt.
    expect(found(({ stored }) => stored.attempts.fill(1, 1))).toEqual(['wrong']);
  });
  it('a task that is not what its caller sent', () => {
    expect(planted(({ stored }) => (stored.snapshot.state = 'failed'))).toContain('wrong');
    expect(planted(({ stored }) => stored.snapshot.artifacts['echo-1']!.pop())).toContain('wrong');
  });
  it('a new attempt that appends to what the dead one had said', () => {
    const found = log((frames) => {
      const { said } = frames[4]!;
      frames[4] = reword(frames[4]!, { ...said, append: true } as Said);
    });
    expect(found).toContain('wrong');
  });

  it.each<[string, Defect, (ids: { messageId: string; role: 'user' | 'agent' }[]) => unknown]>([
    ['missing in the history', 'lost', (history) => history.pop()],
    ['in the history twice', 'doubled', (history) => history.push(history[0]!)],
    ['out of order in the history', 'reordered', (history) => history.reverse()],
    ['of no sender in the history', 'wrong', (history) => history.push({ messageId: 'x', role: 'user' })],
  ])('a message that is %s', (_, defect, act) => {
    expect(planted(({ stored }) => act(stored.snapshot.history), soundScribe())).toEqual([defect]);
  });
  it('a message that became two tasks', () => {
    const [first, second] = [soundEcho(), soundEcho()];
    second.stored.taskId = 'u';
    const observations = observed(first, { stored: [first.stored, second.stored] });
    expect(defectsOf(observations)).toEqual(['doubled']);
  });

  it('an accepted task that is not there', () => {
    expect(defectsOf(observed(soundEcho(), { stored: [] }))).toEqual(['lost']);
  });
  it('a task that does not end, also one whose id no caller has', () => {
    const found = planted(({ record }) => (record.finished = false));
    expect(found).toEqual(['stuck']);
    const sound = soundEcho();
    sound.stored.snapshot.state = 'working';
    expect(defectsOf(observed(sound, { records: [] }))).toContain('stuck');
  });
  it('a process that ended by itself, whatever fault was planned', () => {
    const faults: FaultRecord[] = [{ name: 'frozen-loop', detail: '', from: 0, to: 1, excuses: [] }];
    const ends = (crash: string) => defectsOf(observed(soundEcho(), { crashes: [crash], faults }));
    expect(ends('worker 7 ended by itself (null): the event loop stands still')).toEqual(['unexpected']);
    expect(ends('worker 7 ended by itself (1): out of memory')).toEqual(['unexpected']);
    expect(ends('api 7 ended by itself (null)')).toEqual(['unexpected']);
  });
  it('what an attacker sent, if it does not end', () => {
    const attack = { id: 'a', agent: 'frozen', ended: true };
    expect(defectsOf(observed(soundEcho(), { attacks: [attack] }))).toEqual([]);
    expect(defectsOf(observed(soundEcho(), { attacks: [{ ...attack, ended: false }] }))).toEqual(['stuck']);
  });
  it('a driven task that waits for its caller at the end, but not one whose answer was lost', () => {
    const sound = soundScribe();
    sound.stored.snapshot.state = 'input-required';
    sound.stored.snapshot.artifacts = { 'turn-1': sound.stored.snapshot.artifacts['turn-1']! };
    sound.stored.log.length = 5;
    sound.stored.attempts.length = 5;
    expect(defectsOf(observed(sound, { records: [] }))).toEqual([]);
    expect(defectsOf(observed(sound))).toContain('stuck');
  });
  it('a state after an end that an answer had', () => {
    const answered = (...states: string[]) => planted(({ record }) => (record.answeredStates = states));
    expect(answered('completed', 'working')).toEqual(['afterTerminal']);
    expect(answered('canceled')).toEqual(['afterTerminal']);
    expect(planted(({ record }) => (record.cancel = 'done'))).toEqual(['afterTerminal']);
  });
  it('an end that no client asked for', () => {
    const found = planted(({ record, stored }) => {
      stored.snapshot.state = 'canceled';
      stored.log[8] = reword(stored.log[8]!, status('canceled'));
      record.answeredStates = [];
      for (const { frames } of record.viewers) frames[8] = stored.log[8]!;
    });
    expect(found).toEqual(['wrong']);
  });

  it('an attempt that writes after its successor', () => {
    expect(planted(({ stored }) => (stored.attempts[6] = 1))).toContain('zombie');
  });
  it('two executions that write in turns, whatever the attempts say', () => {
    const found = planted(({ stored }) => {
      const line = (sequence: number, author: string, at: string): Frame =>
        reword(
          { ...stored.log[2]!, sequence },
          {
            ...(stored.log[2]!.said as Extract<Said, { kind: 'artifact' }>),
            append: sequence > 3,
            texts: [`${author} ${at} ${MARK} 1`],
          },
        );
      stored.log[2] = line(3, 'aaaaaaaa 1', '1.1');
      stored.log.splice(3, 1, line(4, 'cccccccc 3', '1.1'), line(5, 'aaaaaaaa 1', '1.2'));
    }, soundScribe());
    expect(found).toContain('zombie');
  });
  it('a line of an execution that is missing or came twice', () => {
    const text = (said: string) =>
      planted(({ stored }) => {
        const { said: old } = stored.log[3]!;
        stored.log[3] = reword(stored.log[3]!, { ...old, texts: [said] } as Said);
      }, soundScribe());
    expect(text(`aaaaaaaa 1 1.3 ${MARK} 1`)).toContain('lost');
    expect(text(`aaaaaaaa 1 1.1 ${MARK} 1`)).toContain('doubled');
  });

  it('what is another tenant’s', () => {
    const found = planted(({ stored }) => (stored.log[3] = { ...stored.log[3]!, raw: OTHER_MARK }));
    expect(found).toContain('crossTenant');
    expect(planted(({ stored }) => (stored.tenant = 'tenant-2'))).toContain('crossTenant');
    const moved = planted(({ record, stored }) => {
      stored.tenant = 'tenant-2';
      for (const frame of stored.log) frame.raw = frame.raw.replaceAll(MARK, '');
      for (const viewer of record.viewers) viewer.frames = [...stored.log];
    });
    expect(moved).toEqual(['crossTenant']);
    const foreignAsks = [{ method: 'GetTask', asker: 'tenant-2', outcome: '{}' }];
    expect(defectsOf(observed(soundEcho(), { foreignAsks }))).toEqual(['crossTenant']);
  });
});

describe('an odd answer', () => {
  const fault: FaultRecord = {
    name: 'f',
    detail: '',
    from: 1000,
    to: 2000,
    excuses: ['unavailable', 'broken'],
  };
  const away = { kind: 'error', code: -32603, message: 'Postgres is away' } as const;
  const answer = (more: Partial<OddAnswer> = {}): OddAnswer => ({
    task: 'x',
    method: 'GetTask',
    api: 7,
    from: 1500,
    to: 1600,
    outcome: away,
    ...more,
  });
  const found = (oddAnswer: OddAnswer, faults = [fault]) =>
    defectsOf(observed(soundEcho(), { oddAnswers: [oddAnswer], faults }));

  it('is explained by a fault of the moment that causes such', () => {
    expect(found(answer())).toEqual([]);
    expect(found(answer({ from: 900, to: 1100 }))).toEqual([]);
    expect(found(answer({ outcome: { kind: 'broken', why: 'reset' } }))).toEqual([]);
    expect(found(answer({ outcome: { kind: 'http', status: 503, body: 'draining' } }))).toEqual([]);
  });
  it('is not explained by one of another time, kind or process', () => {
    expect(found(answer(), [])).toEqual(['unexpected']);
    expect(found(answer({ from: 100, to: 900 }))).toEqual(['unexpected']);
    expect(found(answer({ from: 9000, to: 9100 }))).toEqual(['unexpected']);
    expect(found(answer({ outcome: { kind: 'silent' } }))).toEqual(['unexpected']);
    expect(found(answer(), [{ ...fault, excuses: [] }])).toEqual(['unexpected']);
    expect(found(answer(), [{ ...fault, api: 8 }])).toEqual(['unexpected']);
  });
  it.each([
    { kind: 'error', code: -32602, message: 'bad' },
    { kind: 'error', code: -32603, message: 'Internal error' },
    { kind: 'error', code: -32603, message: 'syntax error in SELECT * FROM tasks' },
    { kind: 'error', code: -32603, message: 'at Database (/x/node_modules/pg/lib)' },
    { kind: 'http', status: 500, body: '' },
  ] as const)('is never explained if it is %j', (outcome) => {
    expect(found(answer({ outcome }))).toEqual(['unexpected']);
  });
  it('is a process that ends by itself', () => {
    expect(defectsOf(observed(soundEcho(), { crashes: ['worker 1 ended'] }))).toEqual(['unexpected']);
  });
});

describe('recovery', () => {
  it('is from the blow until the next event that a present reader saw', () => {
    const { record } = soundEcho();
    const struck = [{ fault: 'kill-worker', at: 420, heads: new Map([['t', 4]]) }];
    const faults: FaultRecord[] = [{ name: 'kill-worker', detail: '', from: 420, to: 430, excuses: [] }];
    expect(recoveryOf(struck, [record], faults, true)).toEqual({ runs: 1, p50: 80, p99: 80, max: 80 });
    const other = { ...faults[0]!, name: 'restart-postgres' };
    expect(recoveryOf(struck, [record], [...faults, other], true).runs).toBe(0);
    expect(recoveryOf(struck, [record], [...faults, other], false).runs).toBe(1);
    expect(recoveryOf([{ ...struck[0]!, at: 50 }], [record], faults, false).runs).toBe(0);
  });
});

describe('of the times of a schedule the checks', () => {
  const FIRST = 60_000;
  /** A schedule of every second: of seven times five made a task. */
  const sound: ScheduleRecord = {
    id: 's',
    name: 'skip',
    first: FIRST,
    everyMs: 1_000,
    readAt: FIRST + 7_100,
    next: FIRST + 7_000,
    fired: 5,
    passed: 2,
    isBusy: false,
    tasks: [0, 1, 2, 4, 6].map((second) => FIRST + second * 1_000),
  };
  const once: ScheduleRecord = {
    ...sound,
    everyMs: undefined,
    next: undefined,
    fired: 1,
    passed: 0,
    tasks: [FIRST],
  };
  const found = (schedule: ScheduleRecord): Defect[] =>
    defectsOf(observed(soundEcho(), { schedules: [schedule] }));

  it('find nothing if each is one task or one record', () => {
    expect(found(sound)).toEqual([]);
    expect(found(once)).toEqual([]);
    // The task of the next time is there, and not yet recorded.
    expect(found({ ...sound, tasks: [...sound.tasks, FIRST + 7_000] })).toEqual([]);
    // It waits for its task.
    expect(found({ ...sound, readAt: FIRST + 60_000, isBusy: true })).toEqual([]);
  });

  it.each<[string, Partial<ScheduleRecord>]>([
    ['one that made no task and no record', { passed: 1 }],
    ['one that is recorded twice', { passed: 3 }],
    ['a task that is not there', { tasks: sound.tasks.slice(1) }],
    ['two tasks of one time', { tasks: [...sound.tasks.slice(1), FIRST + 6_000] }],
    ['a task at no time of it', { tasks: [...sound.tasks.slice(1), FIRST + 500] }],
  ])('find %s', (_what, change) => expect(found({ ...sound, ...change })).toContain('mistimed'));

  it('find one that does not fire any more', () => {
    expect(found({ ...sound, readAt: FIRST + 60_000 })).toContain('stuck');
    expect(found({ ...once, next: FIRST, fired: 0, tasks: [] })).toEqual([]);
    expect(found({ ...once, next: FIRST, fired: 0, tasks: [], readAt: FIRST + 60_000 })).toContain('stuck');
  });
});

describe('checks of calls over MCP', () => {
  const CONFIRMED = { name: 'desk_once', key: 'key', outcome: 'confirmed', attempts: 1, endedAt: 500 };
  const calls = (...keys: string[]) => keys.map((key, i) => ({ key, at: 100 * i }));
  const call: McpRecord = {
    number: 7,
    kind: 'once',
    server: 'modern',
    client: '2026-07-28',
    taskId: 't',
    answered: { state: 'completed', text: 'done answer 7' },
    calls: calls('key'),
    questions: [],
  };
  const task: McpTaskRecord = {
    taskId: 't',
    number: 7,
    state: 'completed',
    text: 'done answer 7',
    retries: 0,
    effects: [CONFIRMED],
  };
  const found = (
    record: Partial<McpRecord>,
    stored: Partial<McpTaskRecord> | undefined = {},
    more: Partial<McpOutcome> = {},
  ): Defect[] => {
    const whole = { ...call, ...record };
    const mcp: McpOutcome = {
      records: [whole],
      tasks: [{ ...task, ...stored }],
      received: whole.calls.length,
      ...more,
    };
    return defectsOf(observed(soundEcho(), { mcp }));
  };
  const unanswered = { taskId: undefined, answered: undefined, fault: 'tools/call: no' };

  it('find nothing if a tool was called once, again with its key, or after an approval of its unknown outcome', () => {
    expect(found({})).toEqual([]);
    expect(found({ kind: 'again', calls: calls('key', 'key') }, { retries: 1 })).toEqual([]);
    expect(found({ calls: calls('key', 'key'), questions: [['key']] })).toEqual([]);
    expect(found({ calls: calls('key'), questions: [['key']] })).toEqual([]);
  });

  it('find nothing but the fault of a call without an answer, whether or not it was accepted', () => {
    expect(found(unanswered)).toEqual(['unexpected']);
    expect(found({ ...unanswered, fault: undefined, calls: calls() }, {}, { tasks: [] })).toEqual(['stuck']);
  });

  it.each<[string, Defect, Partial<McpRecord>, Partial<McpTaskRecord>?]>([
    ['a second call', 'doubled', { calls: calls('key', 'key') }],
    [
      'a third call after one approval',
      'doubled',
      { calls: calls('key', 'key', 'key'), questions: [['key']] },
    ],
    [
      'a second call after an approval of another one',
      'doubled',
      { calls: calls('key', 'key'), questions: [['x']] },
    ],
    ['a second call by the same attempt', 'doubled', { kind: 'again', calls: calls('key', 'key') }],
    ['a second call of a task that did not end', 'doubled', { ...unanswered, calls: calls('key', 'key') }],
    ['a second key', 'doubled', { kind: 'again', calls: calls('key', 'other') }, { retries: 1 }],
    [
      'a second call when the ledger had its end',
      'doubled',
      { kind: 'again', calls: [...calls('key'), { key: 'key', at: 600 }] },
      { retries: 1 },
    ],
    ['a call that the ledger has twice', 'doubled', {}, { effects: [CONFIRMED, CONFIRMED] }],
    ['a call that never came', 'lost', { calls: calls() }],
    ['a call that the ledger does not have', 'wrong', {}, { effects: [] }],
    ['another answer', 'wrong', { answered: { state: 'completed', text: 'done answer 8' } }],
    ['another answer in A2A', 'wrong', {}, { text: 'done answer 8' }],
    ['another state in A2A', 'wrong', {}, { state: 'failed' }],
    ['another state', 'wrong', { answered: { state: 'failed', text: '' } }, { state: 'failed' }],
    ['a question about a call that is known', 'wrong', { questions: [[]] }],
    ['a question about a call that may be repeated', 'wrong', { kind: 'again', questions: [['key']] }],
    ['a refusal', 'unexpected', { fault: 'tools/call: no' }],
    ['a client that gave up', 'stuck', { answered: undefined }],
    ['another task than that of the answer', 'lost', { taskId: 'u' }],
  ])('find %s', (_what, defect, change, stored) => expect(found(change, stored)).toContain(defect));

  it('find calls and tasks beside those that were made', () => {
    expect(found({}, {}, { received: 2 })).toEqual(['unexpected']);
    const twin = { ...task, taskId: 'u' };
    expect(found({}, {}, { tasks: [task, twin] })).toEqual(['doubled']);
    expect(found({}, {}, { tasks: [task, { ...twin, number: 8 }] })).toEqual(['unexpected']);
    expect(found({}, {}, { tasks: [task, { ...twin, number: undefined }] })).toEqual(['unexpected']);
    expect(found({}, {}, { tasks: [] })).toContain('lost');
    expect(found({ ...unanswered, fault: undefined }, {}, { tasks: [] })).toContain('unexpected');
  });
});

describe('checks of tasks whose agents change', () => {
  const steps = ['mark', 'sign', 'seal'].map((step) => ({ step, edition: 3, key: `key of ${step}` }));
  const pinned: VersionRecord = {
    number: 7,
    agent: 'shares',
    taskId: 't',
    isOver: true,
    stored: { state: 'completed', text: 'edition 3' },
    storedEdition: 3,
    calls: steps,
    questions: [{ unknown: [], intended: ['key of sign'] }],
    retries: 0,
    changes: 2,
  };
  const found = (change: Partial<VersionRecord>, more = 0): Defect[] => {
    const record = { ...pinned, ...change };
    const versions = { records: [record], received: record.calls.length + more };
    return defectsOf(observed(soundEcho(), { versions }));
  };
  const [mark, sign, seal] = steps as [VersionRecord['calls'][0], ...VersionRecord['calls']];
  const again = [mark, mark, ...steps.slice(1)];
  const unknown = { unknown: ['key of mark'], intended: [] };

  it('find nothing if each step was done once with one version, or again after an approval', () => {
    expect(found({})).toEqual([]);
    expect(found({ calls: again, questions: [unknown, ...pinned.questions] })).toEqual([]);
  });

  it.each<[string, Defect, Partial<VersionRecord>]>([
    ['a step of another version', 'wrong', { calls: [mark, { ...sign!, edition: 4 }, seal!] }],
    ['an answer of another version', 'wrong', { stored: { state: 'completed', text: 'edition 4' } }],
    ['another version in its runs', 'wrong', { storedEdition: 4 }],
    ['no version in its runs', 'wrong', { storedEdition: undefined }],
    ['a step that was done twice', 'doubled', { calls: again, retries: 1 }],
    ['a step with two keys', 'doubled', { calls: [...steps, { ...mark, key: 'other' }] }],
    ['a step that was not done', 'lost', { calls: steps.slice(0, 2) }],
    ['a step without the approval', 'wrong', { questions: [] }],
    [
      'a question about nothing',
      'wrong',
      { questions: [...pinned.questions, { unknown: [], intended: [] }] },
    ],
    ['a failure', 'wrong', { stored: { state: 'failed', text: '' } }],
    ['a task that does not end', 'stuck', { isOver: false, stored: { state: 'working', text: '' } }],
    ['a refusal', 'unexpected', { fault: 'SendMessage: no' }],
  ])('find %s', (_what, defect, change) => expect(found(change)).toContain(defect));

  it('find a call of no task', () => expect(found({}, 1)).toEqual(['unexpected']));
});

describe('checks of tasks whose code changes', () => {
  const effects = ['mark', 'sign', 'seal'].map((step, i) => ({
    step,
    edition: 3,
    key: `key of ${step}`,
    at: 100 * i,
  }));
  const ledger = effects.map(({ step, key, at }): LedgerEntry => ({
    name: step,
    key,
    outcome: 'confirmed',
    attempts: 1,
    endedAt: at + 50,
  }));
  const sound: CodeRecord = {
    number: 7,
    agent: 'keeper',
    taskId: 't',
    isOver: true,
    stored: { state: 'completed', text: 'mark sign seal of edition 3' },
    effects,
    ledger,
    parked: 0,
    deploys: 2,
  };
  const found = (change: Partial<CodeRecord>, more = 0): Defect[] => {
    const record = { ...sound, ...change };
    const code = { records: [record], received: record.effects.length + more, deploys: 2 };
    return defectsOf(observed(soundEcho(), { code }));
  };
  const [mark, sign, seal] = effects as [CodeRecord['effects'][0], ...CodeRecord['effects']];
  const [ofMark, ofSign, ofSeal] = ledger as [LedgerEntry, ...LedgerEntry[]];
  const repeated = { ...ofMark, attempts: 2, decision: 'repeated' };
  const again = { ...mark, at: 20 };
  const other = { ...seal!, edition: 4 };

  it('find nothing if each step was done once, or again as the ledger explains, and only a pinned task keeps its code', () => {
    expect(found({})).toEqual([]);
    const twice = { effects: [mark, again, sign!, seal!], ledger: [repeated, ofSign!, ofSeal!] };
    expect(found(twice)).toEqual([]);
    const text = 'mark sign seal of edition 5';
    const moved = { effects: [mark, sign!, other], stored: { state: 'completed', text }, parked: 1 };
    expect(found({ agent: 'mover', ...moved })).toEqual([]);
  });

  it.each<[string, Defect, Partial<CodeRecord>]>([
    ['a pinned task with two editions', 'wrong', { effects: [mark, sign!, other] }],
    ['a pinned task that was parked', 'wrong', { parked: 1 }],
    [
      'an answer of another edition',
      'wrong',
      { stored: { state: 'completed', text: 'mark sign seal of edition 4' } },
    ],
    [
      'an answer of older code than the last step',
      'wrong',
      { agent: 'mover', stored: { state: 'completed', text: 'mark sign seal of edition 2' } },
    ],
    ['another answer', 'wrong', { stored: { state: 'completed', text: 'mark seal of edition 3' } }],
    ['a step that was done twice without a reason', 'doubled', { effects: [mark, again, sign!, seal!] }],
    [
      'a step that was done more often than the ledger says',
      'doubled',
      { effects: [mark, again, again, sign!, seal!], ledger: [repeated, ofSign!, ofSeal!] },
    ],
    [
      'a step that was done after a later one',
      'doubled',
      {
        effects: [mark, sign!, { ...mark, at: 150 }, seal!],
        ledger: [{ ...repeated, endedAt: 180 }, ofSign!, ofSeal!],
      },
    ],
    [
      'a step that was done after its end in the ledger',
      'doubled',
      { effects: [mark, { ...mark, at: 60 }, sign!, seal!], ledger: [repeated, ofSign!, ofSeal!] },
    ],
    [
      'a step that was done twice although the receiver was asked',
      'doubled',
      {
        effects: [mark, sign!, { ...sign!, at: 110 }, seal!],
        ledger: [ofMark, { ...ofSign!, attempts: 2, decision: 'repeated' }, ofSeal!],
      },
    ],
    ['a step with two keys', 'wrong', { effects: [mark, { ...again, key: 'other' }, sign!, seal!] }],
    ['a step that the ledger does not have', 'wrong', { ledger: [ofMark, ofSeal!] }],
    [
      'a step that has not ended in the ledger',
      'wrong',
      { ledger: [{ ...ofMark, outcome: 'unknown' }, ofSign!, ofSeal!] },
    ],
    ['a step that was not done', 'lost', { effects: [mark, seal!] }],
    ['a failure', 'wrong', { stored: { state: 'failed', text: '' } }],
    ['a task that does not end', 'stuck', { isOver: false, stored: { state: 'working', text: '' } }],
    ['a refusal', 'unexpected', { fault: 'SendMessage: no' }],
  ])('find %s', (_what, defect, change) => expect(found(change)).toContain(defect));

  it('find an effect of no task', () => expect(found({}, 1)).toEqual(['unexpected']));
});
