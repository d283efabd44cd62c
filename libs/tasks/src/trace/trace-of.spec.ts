import { TaskState } from '@baton/a2a';
import type { LoggedStatus, RunRecord } from '@baton/database';
import { type TraceMaterial, traceOf } from './trace-of.js';

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

const trace = (material: Partial<TraceMaterial>) =>
  traceOf({
    taskId: 'task',
    runs: [],
    statuses: [],
    modelCalls: [],
    toolCalls: [],
    steps: [],
    descendants: [],
    ...material,
  }).map(({ id, parentId, state, startedAt, endedAt }) => [
    id,
    parentId,
    state,
    startedAt.getUTCSeconds(),
    endedAt && endedAt.getUTCSeconds(),
  ]);

const tokens = { inputTokens: 1, outputTokens: 1, cachedTokens: 0 };

describe('the trace of a task', () => {
  it('has a turn with the wait for a slot and the attempt', () => {
    expect(
      trace({
        runs: [run('a', 0, { finishedAt: at(9) })],
        statuses: [status(2, 3, WORKING), status(5, 9, DONE)],
      }),
    ).toEqual([
      ['turn a', null, 'succeeded', 0, 9],
      ['queue a', 'turn a', 'succeeded', 0, 3],
      ['attempt a 1', 'turn a', 'succeeded', 3, 9],
    ]);
  });

  it('shows what waits and what runs without an end', () => {
    expect(trace({ runs: [run('a', 0, { state: 'queued', workerId: null })] })).toEqual([
      ['turn a', null, 'waiting', 0, null],
      ['queue a', 'turn a', 'waiting', 0, null],
    ]);
    expect(trace({ runs: [run('a', 0, { state: 'running' })], statuses: [status(2, 1, WORKING)] })).toEqual([
      ['turn a', null, 'running', 0, null],
      ['queue a', 'turn a', 'succeeded', 0, 1],
      ['attempt a 1', 'turn a', 'running', 1, null],
    ]);
  });

  it('has an attempt for each worker that the run had, and progress is none', () => {
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
      ['queue a', 'turn a', 'succeeded', 0, 1],
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

  it('has the calls of models and tools in their attempt, and in their turn if the log does not know it', () => {
    const model = {
      runId: 'a',
      attempt: 1,
      model: 'o/m',
      finish: 'stop',
      providerFinish: null,
      tools: [],
      isNotMade: false,
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
          { position: 3, runId: 'a', attempt: 1, at: iso(3), ms: 2_000, tool: 'desk_pay', ok: false },
        ],
      }),
    ).toEqual([
      ['turn a', null, 'succeeded', 0, 9],
      ['queue a', 'turn a', 'succeeded', 0, 1],
      ['attempt a 1', 'turn a', 'succeeded', 1, 9],
      ['model 2', 'attempt a 1', 'succeeded', 2, 3],
      ['tool 3', 'attempt a 1', 'failed', 3, 5],
      ['model 5', 'turn a', 'failed', 6, 8],
    ]);
  });

  it('ends a step with its task', () => {
    const steps = [
      {
        attempts: 1,
        error: null,
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
    const step = { attempts: 1, error: null };
    const child = { agentId: 'writer', owner: null, state: DONE };
    expect(
      trace({
        runs: [run('a', 0, { finishedAt: at(4) }), run('b', 5, { startSequence: 9, state: 'suspended' })],
        steps: [
          { ...step, name: 'fetch', kind: 'run', state: 'succeeded', startedAt: iso(1), endedAt: iso(2) },
          { ...step, name: 'nap', kind: 'sleep', state: 'waiting', startedAt: iso(6), endedAt: null },
        ],
        descendants: [
          { ...child, taskId: 'one', parentTaskId: 'task', createdAt: at(2), statusAt: at(3) },
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
});
