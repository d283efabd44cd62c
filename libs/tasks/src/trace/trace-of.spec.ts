import { TaskState } from '@baton/a2a';
import type { LoggedStatus, RunEvent, RunRecord } from '@baton/database';
import { childIdOf } from '../core/child-id.js';
import type { TraceMaterial } from './trace-material.js';
import { traceOf } from './trace-of.js';

const TASK = '6f1c4f0a-3c39-4b1d-9a5e-8e2d7a0c5b17';
const at = (second: number): Date => new Date(Date.UTC(2026, 10, 26, 12, 0, second));
const iso = (second: number): string => at(second).toISOString();

const run = (runId: string, second: number, more: Partial<RunRecord> = {}): RunRecord => ({
  runId,
  state: 'succeeded',
  attempt: 1,
  crashes: 0,
  workerId: 'w-1',
  startSequence: 1,
  createdAt: at(second),
  notBefore: null,
  parked: null,
  finishedAt: null,
  ...more,
});
const status = (sequence: number, second: number, state: TaskState, attempt = 1): LoggedStatus => ({
  sequence,
  attempt,
  at: at(second),
  state,
});
const {
  TASK_STATE_WORKING: WORKING,
  TASK_STATE_INPUT_REQUIRED: ASKS,
  TASK_STATE_COMPLETED: DONE,
} = TaskState;

const spansOf = (material: Partial<TraceMaterial>) =>
  traceOf({
    taskId: TASK,
    runs: [],
    statuses: [],
    modelCalls: [],
    toolCalls: [],
    openCalls: [],
    histories: new Map(),
    receivers: [],
    steps: [],
    descendants: [],
    ...material,
  });
const trace = (material: Partial<TraceMaterial>) =>
  spansOf(material).map(({ id, parentId, state, startedAt, endedAt }) => [
    id,
    parentId,
    state,
    startedAt.getUTCSeconds(),
    endedAt && endedAt.getUTCSeconds(),
  ]);

const tokens = { inputTokens: 1, outputTokens: 1, cachedTokens: 0, cacheWriteTokens: 0 };

describe('the trace of a task', () => {
  it('has a turn with the wait for a slot and the attempt', () => {
    expect(
      trace({
        runs: [run('a', 0, { finishedAt: at(9) })],
        statuses: [status(2, 3, WORKING), status(5, 9, DONE)],
      }),
    ).toEqual([
      ['turn a', null, 'succeeded', 0, 9],
      ['queue a 1', 'turn a', 'succeeded', 0, 3],
      ['attempt a 1', 'turn a', 'succeeded', 3, 9],
    ]);
  });

  it('shows what waits and what runs without an end', () => {
    expect(trace({ runs: [run('a', 0, { state: 'queued', workerId: null })] })).toEqual([
      ['turn a', null, 'waiting', 0, null],
      ['queue a 1', 'turn a', 'waiting', 0, null],
    ]);
    expect(trace({ runs: [run('a', 0, { state: 'running' })], statuses: [status(2, 1, WORKING)] })).toEqual([
      ['turn a', null, 'running', 0, null],
      ['queue a 1', 'turn a', 'succeeded', 0, 1],
      ['attempt a 1', 'turn a', 'running', 1, null],
    ]);
  });

  it('has an attempt for each worker that the run had, and progress is not one', () => {
    expect(
      trace({
        runs: [run('a', 0, { state: 'failed', attempt: 3, finishedAt: at(9) })],
        statuses: [
          status(2, 1, WORKING),
          status(3, 2, WORKING),
          status(4, 5, WORKING, 3),
          status(5, 9, DONE, 3),
        ],
      }),
    ).toEqual([
      ['turn a', null, 'failed', 0, 9],
      ['queue a 1', 'turn a', 'succeeded', 0, 1],
      ['attempt a 1', 'turn a', 'succeeded', 1, 5],
      ['attempt a 3', 'turn a', 'failed', 5, 9],
    ]);
  });

  it('has a question from the status that asks to the next message', () => {
    const runs = [run('a', 0, { finishedAt: at(4) }), run('b', 7, { startSequence: 4, finishedAt: at(9) })];
    const statuses = [status(2, 1, WORKING), status(3, 4, ASKS), status(5, 8, WORKING), status(6, 9, DONE)];
    const questions = (material: Partial<TraceMaterial>) =>
      trace(material).filter(([id]) => String(id).startsWith('question'));
    expect(questions({ runs, statuses })).toEqual([['question 3', null, 'succeeded', 4, 7]]);
    expect(questions({ runs: runs.slice(0, 1), statuses: statuses.slice(0, 2) })).toEqual([
      ['question 3', null, 'waiting', 4, null],
    ]);
    const canceled = [...statuses.slice(0, 2), status(4, 6, TaskState.TASK_STATE_CANCELED, 0)];
    expect(questions({ runs: runs.slice(0, 1), statuses: canceled })).toEqual([
      ['question 3', null, 'canceled', 4, 6],
    ]);
  });

  it('has an unanswered question up to the time at which the turn goes on', () => {
    const history: RunEvent[] = [
      { ended: 1, at: at(4), why: 'suspended' },
      { woken: true, at: at(7) },
      { claimed: 2, at: at(8), worker: 'w-2' },
    ];
    expect(
      trace({
        runs: [run('a', 0, { attempt: 2, finishedAt: at(9) })],
        statuses: [
          status(2, 1, WORKING),
          status(3, 4, ASKS),
          status(4, 7, WORKING, 0),
          status(5, 9, DONE, 2),
        ],
        histories: new Map([['a', history]]),
      }),
    ).toEqual([
      ['turn a', null, 'succeeded', 0, 9],
      ['queue a 1', 'turn a', 'succeeded', 0, 1],
      ['attempt a 1', 'turn a', 'succeeded', 1, 4],
      ['question 3', null, 'failed', 4, 7],
      ['queue a 2', 'turn a', 'succeeded', 7, 8],
      ['attempt a 2', 'turn a', 'succeeded', 8, 9],
    ]);
  });

  it('has the calls of models and tools in their attempt, and in their turn if the log does not have it', () => {
    const model = {
      runId: 'a',
      attempt: 1,
      model: 'o/m',
      finish: 'stop',
      providerFinish: null,
      tools: [],
      isNotMade: false,
      isSummary: false,
      ...tokens,
    };
    expect(
      trace({
        runs: [run('a', 0, { finishedAt: at(9) })],
        statuses: [status(2, 1, WORKING)],
        modelCalls: [
          { ...model, position: 2, at: iso(2), ms: 1_000, error: null },
          { ...model, position: 4, at: null, ms: null, error: null },
          { ...model, position: 5, at: iso(6), ms: 2_000, error: 'o failed (500).', attempt: 7 },
        ],
        toolCalls: [
          {
            position: 3,
            runId: 'a',
            attempt: 1,
            at: iso(3),
            ms: 2_000,
            tool: 'desk_pay',
            ok: false,
            call: 'call-1-1',
          },
        ],
      }),
    ).toEqual([
      ['turn a', null, 'succeeded', 0, 9],
      ['queue a 1', 'turn a', 'succeeded', 0, 1],
      ['attempt a 1', 'turn a', 'succeeded', 1, 9],
      ['model 2', 'attempt a 1', 'succeeded', 2, 3],
      ['tool 3', 'attempt a 1', 'failed', 3, 5],
      ['model 5', 'turn a', 'failed', 6, 8],
    ]);
  });

  it('shows the calls of models that code makes, and those that are under way or were never made', () => {
    const call = {
      runId: 'a',
      attempt: 1,
      model: 'o/m',
      finish: 'stop',
      providerFinish: null,
      tools: [],
      isNotMade: false,
      isSummary: false,
      position: 2,
      at: iso(2),
      ms: 1_000,
      error: null,
      ...tokens,
    };
    const step = {
      attempts: 1,
      error: null,
      position: 1,
      kind: 'model',
      name: 'o/m',
      startedAt: iso(2),
      endedAt: iso(3),
      state: 'succeeded' as const,
    };
    expect(
      trace({
        runs: [run('a', 0)],
        statuses: [status(2, 1, WORKING)],
        modelCalls: [
          { ...call, callId: 'step-1-1' },
          { ...call, callId: 'step-1-2', position: 6, at: iso(5), error: 'o failed (500).' },
        ],
        steps: [
          { ...step, callId: 'step-1-1' },
          { ...step, callId: 'step-1-2', startedAt: iso(4), endedAt: null, state: 'running' },
          {
            ...step,
            callId: 'step-1-3',
            startedAt: iso(7),
            endedAt: iso(8),
            state: 'failed',
            error: 'no key',
          },
        ],
      }).filter(([id]) => /^(model|step)/.test(String(id))),
    ).toEqual([
      ['model 2', 'attempt a 1', 'succeeded', 2, 3],
      ['step 1', 'turn a', 'running', 4, null],
      ['model 6', 'attempt a 1', 'failed', 5, 6],
      ['step 2', 'turn a', 'failed', 7, 8],
    ]);
  });

  it('ends a step with its task', () => {
    const steps = [
      {
        attempts: 1,
        error: null,
        position: 1,
        callId: 'step-1-1',
        name: 'ask',
        kind: 'agent',
        state: 'waiting',
        startedAt: iso(2),
        endedAt: null,
      },
    ] as const;
    const runs = [run('a', 0, { state: 'failed', finishedAt: at(9) })];
    const statuses = [status(2, 1, WORKING), status(3, 9, TaskState.TASK_STATE_FAILED)];
    expect(trace({ runs, statuses, steps }).at(-1)).toEqual(['step 0', 'turn a', 'canceled', 2, 9]);
  });

  it('has durable steps in the turn in which they began, and children below each other', () => {
    const step = { attempts: 1, error: null, position: 1, callId: 'step-1-1' };
    const child = { agentId: 'writer', owner: null, state: DONE };
    expect(
      trace({
        runs: [run('a', 0, { finishedAt: at(4) }), run('b', 5, { startSequence: 9, state: 'suspended' })],
        steps: [
          { ...step, name: 'fetch', kind: 'run', state: 'succeeded', startedAt: iso(1), endedAt: iso(2) },
          { ...step, name: 'nap', kind: 'sleep', state: 'waiting', startedAt: iso(6), endedAt: null },
        ],
        descendants: [
          { ...child, taskId: 'one', parentTaskId: TASK, createdAt: at(2), statusAt: at(3) },
          { ...child, taskId: 'two', parentTaskId: 'one', createdAt: at(3), statusAt: at(3), state: ASKS },
        ],
      }).filter(([id]) => !/^(turn|queue)/.test(String(id))),
    ).toEqual([
      ['step 0', 'turn a', 'succeeded', 1, 2],
      ['child one', null, 'succeeded', 2, 3],
      ['child two', 'child one', 'waiting', 3, null],
      ['step 1', 'turn b', 'waiting', 6, null],
    ]);
  });

  it('has the waits before each attempt, and marks the attempt that died with its worker', () => {
    const history = new Map([
      [
        'a',
        [
          { ended: 1, at: at(3), why: 'crashed' as const },
          { claimed: 2, at: at(5), worker: 'w-2' },
          { ended: 2, at: at(6), why: 'suspended' as const },
          { woken: true as const, at: at(8) },
          { claimed: 3, at: at(9), worker: 'w-3' },
        ],
      ],
    ]);
    const material = {
      runs: [run('a', 0, { state: 'running' as const, attempt: 3, workerId: 'w-3' })],
      statuses: [status(2, 1, WORKING)],
      histories: history,
    };
    expect(trace(material)).toEqual([
      ['turn a', null, 'running', 0, null],
      ['queue a 1', 'turn a', 'succeeded', 0, 1],
      ['attempt a 1', 'turn a', 'failed', 1, 3],
      ['queue a 2', 'turn a', 'succeeded', 3, 5],
      ['attempt a 2', 'turn a', 'succeeded', 5, 6],
      ['queue a 3', 'turn a', 'succeeded', 8, 9],
      ['attempt a 3', 'turn a', 'running', 9, null],
    ]);
    expect(spansOf(material).flatMap(({ kind, workerId }) => (kind === 'attempt' ? [workerId] : []))).toEqual(
      [undefined, 'w-2', 'w-3'],
    );
    const crashed = new Map([['a', history.get('a')!.slice(0, 1)]]);
    const waits = {
      runs: [run('a', 0, { state: 'queued' })],
      statuses: material.statuses,
      histories: crashed,
    };
    expect(trace(waits).at(-1)).toEqual(['queue a 2', 'turn a', 'waiting', 3, null]);
    const asleep = new Map([['a', history.get('a')!.slice(0, 3)]]);
    const suspended = { ...waits, runs: [run('a', 0, { state: 'suspended' })], histories: asleep };
    expect(trace(suspended).at(-1)).toEqual(['attempt a 2', 'turn a', 'succeeded', 5, 6]);
  });

  it('has the wait for other code between the attempts, with the reason while it lasts', () => {
    const history = [
      { ended: 1, at: at(3), why: 'parked' as const },
      { woken: true as const, at: at(5) },
      { claimed: 2, at: at(6), worker: 'w-2' },
      { ended: 2, at: at(7), why: 'parked' as const },
    ];
    const parked = { reason: 'code-changed' as const, problem: 'Step "b" is new', code: 'c', since: at(7) };
    const material = {
      runs: [run('a', 0, { state: 'suspended' as const, attempt: 2, parked })],
      statuses: [status(2, 1, WORKING)],
      histories: new Map([['a', history]]),
    };
    expect(trace(material)).toEqual([
      ['turn a', null, 'waiting', 0, null],
      ['queue a 1', 'turn a', 'succeeded', 0, 1],
      ['attempt a 1', 'turn a', 'succeeded', 1, 3],
      ['parked a 1', 'turn a', 'succeeded', 3, 5],
      ['queue a 2', 'turn a', 'succeeded', 5, 6],
      ['attempt a 2', 'turn a', 'succeeded', 6, 7],
      ['parked a 2', 'turn a', 'waiting', 7, null],
    ]);
    expect(spansOf(material).at(-1)?.error).toBe('Step "b" is new');
  });

  it('shows a call of a tool while it runs and while it waits, and that its task did not wait for it', () => {
    const open = { call: 'call-1-1', tool: 'pay', runId: 'a', at: iso(3), waitsForApproval: false };
    const statuses = [status(2, 1, WORKING)];
    const last = (material: Partial<TraceMaterial>) =>
      trace({ statuses, openCalls: [open], ...material }).find(([id]) => id === 'tool call-1-1');
    const running = run('a', 0, { state: 'running' });
    expect(last({ runs: [running] })).toEqual(['tool call-1-1', 'attempt a 1', 'running', 3, null]);
    expect(last({ runs: [{ ...running, state: 'suspended' }] })).toEqual([
      'tool call-1-1',
      'turn a',
      'waiting',
      3,
      null,
    ]);
    const asked = [...statuses, status(3, 4, ASKS)];
    const ended = run('a', 0, { finishedAt: at(4) });
    const approval = { ...open, waitsForApproval: true };
    expect(last({ runs: [ended], statuses: asked, openCalls: [approval] })?.[2]).toBe('waiting');
    // Approved: it is made by the attempt that has read the answer.
    const next = run('b', 7, { state: 'running', startSequence: 4 });
    expect(last({ runs: [ended, next], statuses: [...asked, status(5, 8, WORKING)] })).toEqual([
      'tool call-1-1',
      'attempt b 1',
      'running',
      8,
      null,
    ]);
    const canceled = [...statuses, status(3, 6, TaskState.TASK_STATE_CANCELED, 0)];
    expect(
      last({ runs: [run('a', 0, { state: 'canceled', finishedAt: at(6) })], statuses: canceled }),
    ).toEqual(['tool call-1-1', 'turn a', 'canceled', 3, 6]);
  });

  it('has a child below the call or step that has begun it', () => {
    const child = (call: string) => ({
      taskId: childIdOf(TASK, call),
      parentTaskId: TASK,
      agentId: 'writer',
      owner: null,
      state: DONE,
      createdAt: at(2),
      statusAt: at(3),
    });
    const parents = spansOf({
      runs: [run('a', 0, { state: 'running' })],
      statuses: [status(2, 1, WORKING)],
      toolCalls: [
        { position: 3, runId: 'a', attempt: 1, at: iso(2), ms: 1, tool: 'ask', ok: true, call: 'call-1-1' },
      ],
      openCalls: [{ call: 'call-2-1', tool: 'ask', runId: 'a', at: iso(3), waitsForApproval: false }],
      steps: [
        {
          name: 'ask',
          kind: 'agent',
          state: 'succeeded',
          attempts: 1,
          error: null,
          position: 2,
          callId: 'step-1-4',
          startedAt: iso(1),
          endedAt: iso(2),
        },
      ],
      descendants: ['call-1-1', 'call-2-1', 'step-1-4', 'call-9-9'].map(child),
    }).flatMap(({ kind, parentId }) => (kind === 'child' ? [parentId] : []));
    expect(parents).toEqual(['tool 3', 'tool call-2-1', 'step 0', null]);
  });

  it('names the person who has answered a question', () => {
    const spans = spansOf({
      runs: [run('a', 0, { finishedAt: at(4) }), run('b', 7, { startSequence: 4, finishedAt: at(9) })],
      statuses: [status(2, 1, WORKING), status(3, 4, ASKS), status(5, 8, WORKING), status(6, 9, DONE)],
      histories: new Map([['b', [{ sent: true as const, at: at(7), by: 'token:ann' }]]]),
    });
    expect(spans.find(({ kind }) => kind === 'question')?.answeredBy).toBe('token:ann');
  });

  it('has the tries of push receivers with their answers', () => {
    const receiver = {
      configId: 'c',
      webhookId: null,
      host: 'example.org',
      state: 'active' as const,
      createdAt: at(0),
      isBehind: true,
      tries: [
        { at: at(3), ms: 1_000, status: 503, error: 'it answered HTTP 503' },
        { at: at(6), ms: 2_000, status: null, error: 'it did not answer' },
        { at: at(8), ms: 1_000, status: 204, error: null },
      ],
    };
    const runs = [run('a', 0, { finishedAt: at(9) })];
    const statuses = [status(2, 1, WORKING), status(3, 7, DONE)];
    const pushes = (of: object) =>
      trace({ runs, statuses, receivers: [{ ...receiver, ...of }] }).filter(([id]) =>
        /^(push|delivery)/.test(String(id)),
      );
    const tries = [
      ['delivery 0 0', 'push 0', 'failed', 2, 3],
      ['delivery 0 1', 'push 0', 'failed', 4, 6],
      ['delivery 0 2', 'push 0', 'succeeded', 7, 8],
    ];
    expect(pushes({})).toEqual([['push 0', null, 'waiting', 0, null], ...tries]);
    expect(pushes({ isBehind: false })).toEqual([['push 0', null, 'succeeded', 0, 8], ...tries]);
    expect(pushes({ state: 'dead' })[0]).toEqual(['push 0', null, 'failed', 0, 8]);
    const names = spansOf({ runs, receivers: [receiver] }).map(({ name }) => name);
    expect(names).toEqual(expect.arrayContaining(['example.org', 'HTTP 503', 'no answer', 'HTTP 204']));
  });

  it('leaves out what an import has given no time', () => {
    const call = { position: 3, runId: 'a', attempt: 1, at: 'once', ms: 1, tool: 'x', ok: true, call: null };
    expect(trace({ toolCalls: [call, { ...call, at: iso(1), ms: 1e300 }] })).toEqual([]);
  });
});
