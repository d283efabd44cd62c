import { type Agent, parseAgentDefinition, Role, TaskState, textOf, textPart } from '@baton/a2a';
import type { AgentOutput, AgentRuntime, Turn } from '@baton/agents';
import {
  AgentCatalogStore,
  CatalogClient,
  Database,
  DatabaseUnavailableError,
  RunStore,
  TaskStore,
  TaskTreeStore,
  TenantStore,
  PLATFORM_ACTOR,
} from '@baton/database';
import type { RunJob } from '@baton/messaging';
import type { INestApplicationContext } from '@nestjs/common';
import { Tracing } from '@baton/telemetry';
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { TurnEnds } from '../turns/turn-ends.js';
import { TurnAcceptance } from '../turns/turn-acceptance.js';
import { newTask } from '../turns/new-task.js';
import { AppendRefused } from '../core/append-refused.js';
import { ActiveRuns } from './active-runs.js';
import { FairStarts } from './fair-starts.js';
import { RunExecutor } from './run-executor.js';
import { WorkerIdentity } from './worker-identity.js';
import { compileWorker } from './worker.fixture.js';
import { userMessage } from '../../../../test/support/agents/turns.js';
import type { EagerClaim } from '../eager-start/eager-start.js';

const HOUR_MS = 3_600_000;
const ECHO = { id: 'echo', slug: 'echo', definition: {} } as Agent;

/** What the agent of a test does. */
let act: (turn: Turn, signal: AbortSignal) => AsyncGenerator<AgentOutput>;
const runtime: AgentRuntime = { name: 'scripted', run: (turn, signal) => act(turn, signal) };

let testDatabase: TestDatabase;
let database: Database;
let worker: INestApplicationContext;
let tenantId: string;
let executor: RunExecutor;

beforeAll(async () => {
  testDatabase = await createDatabase();
  database = new Database({ url: testDatabase.url, poolSize: 4 });
  // The test alone says what is executed: nothing is put on the queue again by itself.
  worker = await (await compileWorker(testDatabase.url, () => runtime, { ORPHAN_MS: '600000' })).init();
  executor = worker.get(RunExecutor, { strict: false });
  ({ id: tenantId } = await worker.get(TenantStore, { strict: false }).create('acme', PLATFORM_ACTOR));
});
afterAll(async () => {
  await worker.close();
  await database.close();
  await testDatabase.drop();
});

/** What the worker of the last run that was claimed would be sent. */
let sent: string | undefined;

/** A run that only the test claims. @param claimFor the worker for which it is claimed as it is made */
async function order(contextId?: string, claimFor?: EagerClaim, agent: Agent = ECHO): Promise<RunJob> {
  let job: RunJob | undefined;
  const slots = {
    quotaFor: async () => ({ maxInFlight: null, maxWaiting: null, exact: false }),
    enqueue: async (run: RunJob) => void (job = run),
  };
  const eager = {
    claimFor: () => claimFor,
    send: async (run: RunJob, _claim: EagerClaim, json: string) => void ([job, sent] = [run, json]),
  };
  const message = userMessage('hi', { messageId: randomUUID(), contextId: '', taskId: '' });
  const store = worker.get(TaskStore, { strict: false });
  const acceptance = new TurnAcceptance(store, slots, eager, { maxAttempts: 3 }, new Tracing());
  await acceptance.createTask({ tenantId, agent, task: newTask(message, { contextId }) });
  return job!;
}

/** An agent of the catalog with these settings. */
async function agentWith(slug: string, settings: object): Promise<Agent> {
  const catalog = new CatalogClient(testDatabase.url);
  const definition = parseAgentDefinition({
    name: slug,
    description: 'Of a test.',
    runtime: 'echo',
    ...settings,
  });
  const { id } = await new AgentCatalogStore(catalog).create(
    { tenantId, slug, definition, enabled: true, by: 'test' },
    PLATFORM_ACTOR,
  );
  await catalog.close();
  return { ...ECHO, id, slug };
}

const status = ({ task }: Turn, state: TaskState, text?: string): AgentOutput => {
  const said = { contextId: task.contextId, taskId: task.id, role: Role.ROLE_AGENT, metadata: undefined };
  const message =
    text === undefined
      ? undefined
      : { ...said, messageId: randomUUID(), parts: [textPart(text)], extensions: [], referenceTaskIds: [] };
  const value = { taskId: task.id, contextId: task.contextId, metadata: undefined };
  return { $case: 'statusUpdate', value: { ...value, status: { state, message, timestamp: undefined } } };
};
const chunk = ({ task }: Turn, text: string, append: boolean): AgentOutput => ({
  $case: 'artifactUpdate',
  value: {
    taskId: task.id,
    contextId: task.contextId,
    append,
    lastChunk: false,
    metadata: undefined,
    artifact: {
      artifactId: 'a',
      name: '',
      description: '',
      parts: [textPart(text)],
      metadata: undefined,
      extensions: [],
    },
  },
});

const runOf = async ({
  runId,
}: RunJob): Promise<{ state: string; attempt: number; error: string | null }> => {
  const text = `SELECT state, attempt, error FROM runs WHERE id = '${runId}'`;
  return (
    await database.systemQuery<{ state: string; attempt: number; error: string | null }>({ text }, [])
  )[0]!;
};
const logOf = async ({ taskId }: RunJob) => {
  const events = await worker.get(TaskStore, { strict: false }).readEvents(tenantId, taskId, 0, 100);
  return events.map(({ sequence, payload }) => {
    if (payload.$case === 'artifactUpdate') return [sequence, textOf(payload.value.artifact?.parts ?? [])];
    return [sequence, payload.value.status?.state];
  });
};
const taskOf = async ({ taskId }: RunJob) =>
  (await worker.get(TaskStore, { strict: false }).get(tenantId, taskId))!.task;

it('a run is claimed, and each output of its agent is in the log once and in order', async () => {
  act = async function* (turn) {
    yield chunk(turn, 'one', false);
    yield chunk(turn, 'two', true);
    yield status(turn, TaskState.TASK_STATE_COMPLETED);
    yield chunk(turn, 'after the end', true);
  };
  const job = await order();
  await executor.execute(job);
  expect(await logOf(job)).toEqual([
    [1, TaskState.TASK_STATE_SUBMITTED],
    [2, TaskState.TASK_STATE_WORKING],
    [3, 'one'],
    [4, 'two'],
    [5, TaskState.TASK_STATE_COMPLETED],
  ]);
  expect(await runOf(job)).toEqual({ state: 'succeeded', attempt: 1, error: null });
});

it('an agent is given the earlier tasks of a context, and of a new one without asking Postgres', async () => {
  const known: string[][] = [];
  act = async function* (turn) {
    known.push((await turn.earlierTasks()).map(({ id }) => id));
    yield status(turn, TaskState.TASK_STATE_COMPLETED);
  };
  const listContext = jest.spyOn(worker.get(TaskStore, { strict: false }), 'listContext');
  const first = await order();
  await executor.execute(first);
  expect(listContext).not.toHaveBeenCalled();
  const { contextId } = await taskOf(first);
  const second = await order(contextId);
  await executor.execute(second);
  const third = await order(contextId);
  await executor.execute(third);
  await executor.execute(await order('named by the caller'));
  expect(known).toEqual([[], [first.taskId], [first.taskId, second.taskId], []]);
  listContext.mockRestore();
});

describe('a run that was claimed for this worker as it was made', () => {
  const claimFor = () => ({
    workerId: worker.get(WorkerIdentity, { strict: false }).id,
    leaseMs: 60_000,
    startBefore: 0,
  });

  it.each([
    ['sent', () => sent],
    ['read', () => undefined],
  ])('is executed when it was %s, and its log is as that of any other', async (_how, json) => {
    act = async function* (turn) {
      expect(turn.task.status?.state).toBe(TaskState.TASK_STATE_WORKING);
      yield chunk(turn, 'one', false);
      yield status(turn, TaskState.TASK_STATE_COMPLETED);
    };
    const job = await order(undefined, claimFor());
    await executor.executeEager(job, json());
    expect(await logOf(job)).toEqual([
      [1, TaskState.TASK_STATE_SUBMITTED],
      [2, TaskState.TASK_STATE_WORKING],
      [3, 'one'],
      [4, TaskState.TASK_STATE_COMPLETED],
    ]);
    expect(await runOf(job)).toEqual({ state: 'succeeded', attempt: 1, error: null });
  });

  it('has a live lease while its agent is silent', async () => {
    let finish!: () => void;
    const finished = new Promise<void>((resolve) => (finish = resolve));
    act = async function* (turn) {
      await finished;
      yield status(turn, TaskState.TASK_STATE_COMPLETED);
    };
    const job = await order(undefined, claimFor());
    const executed = executor.executeEager(job);
    while ((await taskOf(job)).status?.state !== TaskState.TASK_STATE_WORKING);
    finish();
    await executed;
    expect(await logOf(job)).toHaveLength(3);
    expect(await runOf(job)).toMatchObject({ attempt: 1 });
  });

  it('fails in the log as any other', async () => {
    act = async function* () {
      throw new Error('broken');
    };
    const job = await order(undefined, claimFor());
    await executor.executeEager(job);
    expect((await logOf(job)).map(([, said]) => said)).toEqual([
      TaskState.TASK_STATE_SUBMITTED,
      TaskState.TASK_STATE_WORKING,
      TaskState.TASK_STATE_FAILED,
    ]);
  });

  it('is left alone if it is for another worker, or over', async () => {
    let turns = 0;
    act = async function* (turn) {
      turns += 1;
      yield status(turn, TaskState.TASK_STATE_COMPLETED);
    };
    const others = await order(undefined, { ...claimFor(), workerId: 'another' });
    await executor.executeEager(others);
    const mine = await order(undefined, claimFor());
    await Promise.all([executor.executeEager(mine), executor.executeEager(mine)]);
    await executor.executeEager(mine);
    expect(turns).toBe(1);
    expect(await runOf(others)).toEqual({ state: 'running', attempt: 1, error: null });
  });
});

it('a run that comes twice, in an outage, is executed once', async () => {
  let turns = 0;
  act = async function* (turn) {
    turns += 1;
    yield chunk(turn, 'one', false);
    yield status(turn, TaskState.TASK_STATE_COMPLETED);
  };
  const runs = worker.get(RunStore, { strict: false });
  const claim = runs.claim.bind(runs);
  // Both jobs lose the answer to their claim, and claim again.
  const claims = jest.spyOn(runs, 'claim');
  for (let i = 0; i < 2; i++) {
    claims.mockImplementationOnce(async (...asked) => {
      await claim(...asked);
      throw new DatabaseUnavailableError('the connection was lost');
    });
  }
  const job = await order();
  const claimed: string[] = [];
  await Promise.all([
    executor.execute(job, () => claimed.push('one')),
    executor.execute({ ...job }, () => claimed.push('other')),
  ]);
  claims.mockRestore();
  expect(turns).toBe(1);
  expect(claimed.toSorted()).toEqual(['one', 'other']);
  expect(await runOf(job)).toEqual({ state: 'succeeded', attempt: 1, error: null });
  // The next job of the run is executed as ever.
  const next = await order();
  await executor.execute(next);
  await executor.execute(next);
  expect(turns).toBe(2);
});

it('a run that another worker has, or that is over, is not executed', async () => {
  let turns = 0;
  act = async function* (turn) {
    turns += 1;
    yield status(turn, TaskState.TASK_STATE_COMPLETED);
  };
  const job = await order();
  await Promise.all([executor.execute(job), executor.execute(job)]);
  await executor.execute(job);
  expect(turns).toBe(1);
  expect(await runOf(job)).toMatchObject({ state: 'succeeded', attempt: 1 });
  expect(await logOf(job)).toHaveLength(3);
});

it('an agent that throws fails its task; its output stays, and only the operator reads the reason', async () => {
  act = async function* (turn) {
    yield chunk(turn, 'so far', false);
    throw new Error('secret reason');
  };
  const job = await order();
  await executor.execute(job);
  const { status: ended, artifacts } = await taskOf(job);
  expect(ended?.state).toBe(TaskState.TASK_STATE_FAILED);
  expect(textOf(ended?.message?.parts ?? [])).toBe('The agent stopped with an unexpected error');
  expect(textOf(artifacts[0]?.parts ?? [])).toBe('so far');
  expect(await runOf(job)).toMatchObject({ state: 'failed', error: 'secret reason' });
});

it('a turn that has lost Postgres continues, and is not a failure of its agent', async () => {
  act = async function* (turn) {
    yield chunk(turn, `attempt ${turn.attempt}`, false);
    if (turn.attempt === 1) throw new DatabaseUnavailableError('Postgres is not available');
    yield status(turn, TaskState.TASK_STATE_COMPLETED);
  };
  const job = await order();
  await executor.execute(job);
  expect(await runOf(job)).toMatchObject({ state: 'queued', error: null });
  await executor.execute(job);
  const { status: ended, artifacts } = await taskOf(job);
  expect(ended?.state).toBe(TaskState.TASK_STATE_COMPLETED);
  expect(artifacts.map(({ parts }) => textOf(parts))).toEqual(['attempt 2']);
});

it('an agent that ends without a final status fails its task', async () => {
  act = async function* (turn) {
    yield chunk(turn, 'half', false);
  };
  const job = await order();
  await executor.execute(job);
  const { status: ended } = await taskOf(job);
  expect(textOf(ended?.message?.parts ?? [])).toBe('The agent returned without a final status');
});

it('an agent whose task is canceled is stopped, and none of its later output is in the log', async () => {
  let reason: unknown;
  let begin: () => void = () => undefined;
  const begun = new Promise<void>((resolve) => (begin = resolve));
  act = async function* (turn, signal) {
    begin();
    await once(signal, 'abort');
    reason = signal.reason;
    yield status(turn, TaskState.TASK_STATE_COMPLETED);
  };
  const job = await order();
  const executed = executor.execute(job);
  await begun;
  await worker.get(TurnEnds, { strict: false }).cancel(tenantId, null, job.taskId);
  await executed;
  expect(reason).toBe('canceled');
  expect(await logOf(job)).toEqual([
    [1, TaskState.TASK_STATE_SUBMITTED],
    [2, TaskState.TASK_STATE_WORKING],
    [3, TaskState.TASK_STATE_CANCELED],
  ]);
  expect(await runOf(job)).toMatchObject({ state: 'canceled' });
});

it('an agent whose task was canceled without word to its worker is stopped when it says more', async () => {
  let reason: unknown;
  act = async function* (turn, signal) {
    await worker.get(TaskStore, { strict: false }).cancel(tenantId, null, turn.task.id);
    yield chunk(turn, 'too late', false);
    if (!signal.aborted) await once(signal, 'abort');
    reason = signal.reason;
  };
  const job = await order();
  await executor.execute(job);
  expect(reason).toBe('canceled');
  expect(await logOf(job)).toHaveLength(3);
});

describe('a run that waits for others of its tenant to begin', () => {
  /** Executes a run that is held up until it is stopped. @returns the run, and what resolves when its execution is over */
  async function hold(): Promise<{ job: RunJob; executed: Promise<void> }> {
    act = async function* (turn) {
      yield status(turn, TaskState.TASK_STATE_COMPLETED);
    };
    const job = await order();
    let executed!: Promise<void>;
    await new Promise<void>((isHeld) => {
      const enter = (_: string, signal: AbortSignal) => {
        isHeld();
        return once(signal, 'abort').then(() => Promise.reject(new AppendRefused('the run was stopped')));
      };
      jest.spyOn(worker.get(FairStarts, { strict: false }), 'enter').mockImplementationOnce(enter);
      executed = executor.execute(job);
    });
    return { job, executed };
  }

  it('is canceled without a word of its agent', async () => {
    const { job, executed } = await hold();
    await worker.get(TurnEnds, { strict: false }).cancel(tenantId, null, job.taskId);
    await executed;
    expect(await logOf(job)).toEqual([
      [1, TaskState.TASK_STATE_SUBMITTED],
      [2, TaskState.TASK_STATE_WORKING],
      [3, TaskState.TASK_STATE_CANCELED],
    ]);
  });

  it('goes back to the queue when its worker stops', async () => {
    const { job, executed } = await hold();
    worker.get(ActiveRuns, { strict: false }).stopAll('shutdown');
    await executed;
    expect(await runOf(job)).toMatchObject({ state: 'queued', error: null });
  });
});

it('an attempt that has lost its run writes nothing more: the next one continues in its place', async () => {
  const runs = worker.get(RunStore, { strict: false });
  act = async function* (turn) {
    if (turn.attempt === 1) {
      yield chunk(turn, 'of the dead attempt', false);
      // As after an expired lease: the run is on the queue again, and its lease is another's.
      await runs.returnToQueue({ tenantId, taskId: turn.task.id, runId: turn.runId, attempt: 1 });
      await executor.execute({ ...job, attempt: 1 });
    }
    yield chunk(turn, `of attempt ${turn.attempt}`, true);
    yield status(turn, TaskState.TASK_STATE_COMPLETED);
  };
  const job = await order();
  await executor.execute(job);
  const { artifacts, status: ended } = await taskOf(job);
  expect(ended?.state).toBe(TaskState.TASK_STATE_COMPLETED);
  expect(artifacts.map(({ parts }) => textOf(parts))).toEqual(['of attempt 2']);
  expect(await runOf(job)).toMatchObject({ state: 'succeeded', attempt: 2 });
});

it('a question of an agent with reminders is due for them after its times, and no other end', async () => {
  const agent = await agentWith('patient', { reminders: { remindAfterHours: 1, escalateAfterHours: 3 } });
  const remindersAfter = async (state: TaskState) => {
    act = async function* (turn) {
      yield status(turn, state);
    };
    const job = await order(undefined, undefined, agent);
    await executor.execute(job);
    const { reminders } = await worker.get(TaskTreeStore, { strict: false }).find(tenantId, job.taskId);
    const since = Date.parse((await taskOf(job)).status?.timestamp ?? '');
    return reminders.map(({ kind, dueAt }) => [
      kind,
      Math.round(((dueAt?.getTime() ?? 0) - since) / HOUR_MS),
    ]);
  };
  expect(await remindersAfter(TaskState.TASK_STATE_INPUT_REQUIRED)).toEqual([
    ['reminder', 1],
    ['escalation', 3],
  ]);
  expect(await remindersAfter(TaskState.TASK_STATE_COMPLETED)).toEqual([]);
});

describe('a task whose agent pins its tasks', () => {
  let runs: RunStore;
  let pinned: Agent;

  beforeAll(async () => {
    runs = worker.get(RunStore, { strict: false });
    pinned = await agentWith('keeper', { versions: 'pinned' });
  });
  afterEach(() => jest.restoreAllMocks());

  it('begins when its version is noted, however long Postgres is away', async () => {
    const steps: string[] = [];
    act = async function* (turn) {
      steps.push('begun');
      yield status(turn, TaskState.TASK_STATE_COMPLETED);
    };
    const job = await order(undefined, undefined, pinned);
    const note = runs.noteAgentVersion;
    jest.spyOn(runs, 'noteAgentVersion').mockImplementation(async (run, noted) => {
      if (steps.push('away') <= 3) throw new DatabaseUnavailableError('Postgres is not available');
      const isNoted = await note(run, noted);
      steps.push('noted');
      return isNoted;
    });
    await executor.execute(job);
    expect(steps).toEqual(['away', 'away', 'away', 'away', 'noted', 'begun']);
    expect(await runOf(job)).toMatchObject({ state: 'succeeded', attempt: 1 });
  });

  it('is left alone by an attempt that comes too late to note its version', async () => {
    const begun: number[] = [];
    act = async function* (turn) {
      begun.push(turn.attempt);
      yield status(turn, TaskState.TASK_STATE_COMPLETED);
    };
    const job = await order(undefined, undefined, pinned);
    const note = runs.noteAgentVersion;
    jest.spyOn(runs, 'noteAgentVersion').mockImplementationOnce(async (run, noted) => {
      // As after an expired lease: the run is another worker's.
      await runs.returnToQueue(run);
      await executor.execute({ ...job, attempt: 1 });
      return note(run, noted);
    });
    await executor.execute(job);
    expect(begun).toEqual([2]);
    expect(await runOf(job)).toMatchObject({ state: 'succeeded', attempt: 2 });
  });
});
