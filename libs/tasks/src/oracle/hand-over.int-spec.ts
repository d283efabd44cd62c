import { type Agent, Role, TaskState, textOf, textPart } from '@baton/a2a';
import type { AgentOutput, AgentRuntime, Turn } from '@baton/agents';
import { TenantStore, PLATFORM_ACTOR } from '@baton/database';
import { Messaging } from '@baton/messaging';
import type { INestApplicationContext } from '@nestjs/common';
import { StoreAdapter } from '../../../database/src/oracle/store-adapter.fixture.js';
import {
  newTask as storedTask,
  openStores,
  sql,
  type Stores,
  textMessage,
} from '../../../database/src/stores.fixture.js';
import { Random } from '../../../../test/chaos/random.js';
import {
  lineOf,
  type Operation,
  type Snapshot,
  type TaskState as StateName,
} from '../../../../test/oracle/operations.js';
import { differencesOf } from '../../../../test/oracle/oracle.js';
import { isInterrupted, isTerminal, type Result, TaskModel } from '../../../../test/oracle/task-model.js';
import { createRedisUrl, DRIVERS } from '../../../../test/support/index.js';
import { ActiveRuns } from '../runs/active-runs.js';
import { Sweeper } from '../runs/sweeper.js';
import { compileWorker } from '../runs/worker.fixture.js';
import { TurnEnds } from '../turns/turn-ends.js';
import { TurnAcceptance } from '../turns/turn-acceptance.js';
import { newTask } from '../turns/new-task.js';

/*
 * The model of `test/oracle` over a real queue: callers send messages, two workers execute the turns. Whatever the queue does with a run
 * (it brings it twice, late, or never), every turn is executed once, by its first attempt.
 */

const SEED = process.env.ORACLE_SEED ?? 'queue';
const STEPS = Number(process.env.ORACLE_STEPS ?? 60);
/** After this time the workers are taken to be done. A run takes some milliseconds. */
const MAX_WAIT_MS = 60_000;

const AGENT = { id: 'echo', slug: 'echo', definition: {} } as Agent;
const OWNER = 'token:a';
const ENDS: Record<string, TaskState> = {
  'input-required': TaskState.TASK_STATE_INPUT_REQUIRED,
  completed: TaskState.TASK_STATE_COMPLETED,
  failed: TaskState.TASK_STATE_FAILED,
};

/** An agent that does what the message says: a text, and the state with which the turn ends. */
const runtime: AgentRuntime = {
  name: 'scripted',
  async *run({ task, message }: Turn): AsyncGenerator<AgentOutput> {
    const [text = '', end = ''] = textOf(message.parts).split(' ');
    const ids = { taskId: task.id, contextId: task.contextId, metadata: undefined };
    const artifact = {
      artifactId: 'reply',
      name: '',
      description: '',
      parts: [textPart(text)],
      metadata: undefined,
      extensions: [],
    };
    yield { $case: 'artifactUpdate', value: { ...ids, artifact, append: false, lastChunk: false } };
    const status = { state: ENDS[end]!, message: undefined, timestamp: undefined };
    yield { $case: 'statusUpdate', value: { ...ids, status } };
  },
};

describe.each(DRIVERS)('runs that are handed over by %s', (driver) => {
  let stores: Stores;
  let adapter: StoreAdapter;
  let workers: INestApplicationContext[];
  let model: TaskModel;
  let names = 0;
  /** What was done so far, for people. */
  const done: string[] = [];
  const apply = (operation: Operation): Result => {
    done.push(lineOf(operation));
    return model.apply(operation);
  };

  beforeAll(async () => {
    stores = await openStores();
    adapter = new StoreAdapter(stores);
    const settings: Record<string, string> = {
      WORKER_CONCURRENCY: '8',
      ...(driver === 'redis' && { REDIS_URL: await createRedisUrl() }),
    };
    const start = async (): Promise<INestApplicationContext> => {
      const worker = await (await compileWorker(stores.url, () => runtime, settings)).init();
      // No thread extends leases here, so the worker would count as cut off from Postgres.
      const active = worker.get(ActiveRuns, { strict: false });
      active.onHeartbeat({ type: 'back' });
      active.onPostgres = undefined;
      return worker;
    };
    workers = [await start(), await start()];
    model = new TaskModel();
    const tenant = await get(TenantStore).create('acme', PLATFORM_ACTOR);
    adapter.learn(tenant.id, 'A');
    tenantId = tenant.id;
  });
  afterAll(async () => {
    await Promise.all(workers.map((worker) => worker.close()));
    await stores.close();
  });

  let tenantId: string;
  const get = <T>(token: abstract new (...args: never[]) => T): T =>
    workers[names % 2]!.get<T>(token, { strict: false });
  const userMessage = (text: string, taskId: string, contextId: string) => ({
    ...textMessage(text, { taskId, contextId }),
    role: Role.ROLE_USER,
  });

  /** What a caller sends. @returns the message of the model */
  async function send(random: Random): Promise<void> {
    names += 1;
    const [task, says] = [`T${names}`, `m${names} ${random.pick(Object.keys(ENDS))}`];
    const key = random.chance(0.4) ? { name: random.pick(['K1', 'K2', 'K3']), content: null } : undefined;
    const id = adapter.id(task);
    const message = userMessage(says, id, adapter.contextOf(task));
    const { created } = await get(TurnAcceptance).createTask({
      tenantId,
      owner: OWNER,
      agent: AGENT,
      task: newTask(message, { id, contextId: adapter.contextOf(task) }),
      ...(key && { key: adapter.messageKey(key) }),
    });
    const { answer } = apply({
      verb: 'createTask',
      tenant: 'A',
      task,
      agent: 'echo',
      owner: OWNER,
      says,
      key,
    });
    expect(created).toBe((answer as { created: boolean }).created);
  }

  /** The next message of a task, whatever its state. */
  async function answer(random: Random): Promise<void> {
    const open = model.tasks.filter(isInterrupted);
    const task = random.pick(open.length > 0 && random.chance(0.8) ? open : model.tasks);
    names += 1;
    const [run, says] = [`${task.name}/${names}`, `m${names} ${random.pick(Object.keys(ENDS))}`];
    const message = userMessage(says, adapter.id(task.name), adapter.contextOf(task.name));
    const result = await get(TurnAcceptance).continueTask({ tenantId, agent: AGENT, message });
    const expected = apply({
      verb: 'continueTask',
      tenant: 'A',
      task: task.name,
      agent: 'echo',
      run,
      says,
    });
    expect(result.ok ? 'on the queue' : result.reason).toBe(isTerminal(task) ? 'terminal' : expected.outcome);
    const others = `SELECT id FROM runs WHERE task_id = '${adapter.id(task.name)}' ORDER BY created_at DESC LIMIT 1`;
    const [newest] = (await sql(stores, others)) as { id: string }[];
    if (result.ok && newest) adapter.learn(newest.id, run);
  }

  async function cancel(random: Random): Promise<void> {
    const { name: task } = random.pick(model.tasks);
    const result = await get(TurnEnds).cancel(tenantId, null, adapter.id(task));
    const expected = apply({ verb: 'cancelTask', tenant: 'A', task, agent: null });
    expect(result.ok).toBe(!expected.outcome.startsWith('refused'));
  }

  /** The queue brings a run that has ended, several times. */
  async function bringAgain(random: Random): Promise<void> {
    const { name, task } = random.pick(model.runs);
    const job = { tenantId, taskId: adapter.id(task), runId: adapter.id(name) };
    const again = [0, 1, 2].map((attempt) => ({ ...job, attempt, mayUseReserved: random.chance(0.5) }));
    done.push(`the queue brings ${name} again`);
    if (name.endsWith('/1')) await get(Messaging).enqueueRuns(again);
  }

  /** The queue loses a run: only a sweep brings it back. */
  async function lose(random: Random): Promise<void> {
    names += 1;
    const [task, says] = [`T${names}`, `m${names} ${random.pick(Object.keys(ENDS))}`];
    const operation: Operation = { verb: 'createTask', tenant: 'A', task, agent: 'echo', owner: OWNER, says };
    const made = storedTask({ tenantId, agentId: 'echo' });
    const [id, contextId] = [adapter.id(task), adapter.contextOf(task)];
    const input = {
      ...made,
      owner: OWNER,
      runId: id,
      task: { ...made.task, id, contextId, history: [userMessage(says, id, contextId)] },
    };
    await stores.tasks.create(input);
    apply(operation);
    done.push(`the queue loses ${task}/1`);
    await adapter.queueLoses({ tenant: 'A', run: `${task}/1` });
    await Promise.all(workers.map((worker) => worker.get(Sweeper, { strict: false }).runOnce()));
  }

  /** The model after the workers have executed every run. */
  function work(): void {
    for (const { name: run, task, state } of model.runs) {
      if (state !== 'queued') continue;
      const claim = apply({ verb: 'claimRun', tenant: 'A', run, worker: 'w', again: false }).answer as {
        head: number;
        says: string;
      };
      const [text = '', end] = claim.says.split(' ');
      const writer = { tenant: 'A', task, run, attempt: 1 };
      const events = [{ artifact: 'reply', text, append: false }];
      apply({
        verb: 'endTurn',
        writer,
        head: claim.head,
        events,
        state: end as StateName,
        folds: true,
      });
    }
  }

  /** Either worker may have executed a run. */
  const withoutWorkers = (snapshot: Snapshot): Snapshot => ({
    ...snapshot,
    runs: Object.fromEntries(
      Object.entries(snapshot.runs ?? {}).map(([name, run]) => [name, { ...(run as object), worker: 'w' }]),
    ),
  });

  /** With all that was done to the tasks that differ. */
  function explain(what: string, differences: readonly string[]): string {
    const tasks = new Set(differences.join('\n').match(/\bT\d+\b/g));
    const steps = done.filter((line) => line.match(/\bT\d+\b/g)?.some((name) => tasks.has(name)));
    return [`ORACLE_SEED=${SEED}: after ${what}`, ...steps, '', ...differences].join('\n');
  }

  /** Resolves when Postgres has what the model says. */
  async function settled(what: string): Promise<void> {
    work();
    const until = performance.now() + MAX_WAIT_MS;
    for (;;) {
      const differences = differencesOf(
        '',
        withoutWorkers(model.snapshot()),
        withoutWorkers(await adapter.snapshot()),
      );
      if (differences.length === 0) return;
      if (performance.now() > until) throw new Error(explain(what, differences));
    }
  }

  it('are executed once, whatever the queue does with them', async () => {
    const random = new Random(SEED);
    const steps = { send, answer, cancel, bringAgain, lose };
    await send(random);
    await settled('the first message');
    for (let i = 1; i <= STEPS; i++) {
      const name = random.weighted({ send: 8, answer: 8, cancel: 2, bringAgain: 4, lose: 2 });
      await steps[name](random);
      // Sometimes several come before the first one is done.
      if (random.chance(0.7) || name !== 'send') await settled(`step ${i}, ${name}`);
    }
    await settled('the last step');
  });
});
