import { type EventPayload, type Message, Role, type Task, TaskState, serializePayload } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { createDatabase } from '../../../test/support/index.js';
import {
  type ClaimedRun,
  type Crashes,
  Database,
  DispatchStore,
  type LeaseKey,
  type NewEvent,
  type NewTask,
  type RunKey,
  RunStore,
  TaskStore,
  WorkerStore,
} from './index.js';
import { heartbeat } from './runs/leases/heartbeat.js';

/** SQL across tenants, for what no store offers. */
export const sql = ({ database }: Pick<Stores, 'database'>, text: string): Promise<object[]> =>
  database.systemQuery({ text }, []);

/** A fresh database with the stores on it. */
export async function openStores(poolSize = 8) {
  const { url, drop } = await createDatabase();
  const database = new Database({ url, poolSize });
  const close = async (): Promise<void> => {
    await database.close();
    await drop();
  };
  return {
    url,
    database,
    close,
    tasks: new TaskStore(database),
    runs: new RunStore(database),
    dispatch: new DispatchStore(database),
    workers: new WorkerStore(database),
  };
}

/** How many runs are in each state. */
export async function countByState({ runs }: Pick<Stores, 'runs'>): Promise<Record<string, number>> {
  const { states } = await runs.countActive(0);
  return Object.fromEntries(Object.entries(states).map(([state, counted]) => [state, counted.runs]));
}

export type Stores = Awaited<ReturnType<typeof openStores>>;

export const textMessage = (text: string, ids: Partial<Message> = {}): Message => ({
  messageId: randomUUID(),
  contextId: '',
  taskId: '',
  role: Role.ROLE_USER,
  parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
  ...ids,
});

/** A task as an operation hands it over. */
export function newTask(
  overrides: { tenantId?: string; agentId?: string; text?: string; task?: Partial<Task> } = {},
) {
  const id = randomUUID();
  const task: Task = {
    id,
    contextId: randomUUID(),
    status: {
      state: TaskState.TASK_STATE_SUBMITTED,
      message: undefined,
      timestamp: new Date().toISOString(),
    },
    artifacts: [],
    history: [textMessage(overrides.text ?? 'hello', { taskId: id })],
    metadata: undefined,
    ...overrides.task,
  };
  const input: NewTask = {
    tenantId: overrides.tenantId ?? randomUUID(),
    agentId: overrides.agentId ?? 'echo',
    runId: randomUUID(),
    task,
    extensions: [],
  };
  return input;
}

export const entry = (payload: EventPayload): NewEvent => ({ payload, json: serializePayload(payload) });

export const status = (run: RunKey, state: TaskState, message?: Message): NewEvent =>
  entry({
    $case: 'statusUpdate',
    value: {
      taskId: run.taskId,
      contextId: '',
      status: { state, message, timestamp: new Date().toISOString() },
      metadata: undefined,
    },
  });

export const chunk = (run: RunKey, text: string, append = true): NewEvent =>
  artifactChunk(run, 'reply', text, append);

export const artifactChunk = (run: RunKey, artifactId: string, text: string, append = true): NewEvent =>
  entry({
    $case: 'artifactUpdate',
    value: {
      taskId: run.taskId,
      contextId: '',
      artifact: {
        artifactId,
        name: '',
        description: '',
        parts: textMessage(text).parts,
        metadata: undefined,
        extensions: [],
      },
      append,
      lastChunk: false,
      metadata: undefined,
    },
  });

/** What the parts of all artifacts say. */
export const texts = (task: Pick<Task, 'artifacts'>): unknown[] =>
  task.artifacts.flatMap(({ parts }) => parts.map((part): unknown => part.content?.value));

/** What each message says first. */
export const saidIn = (messages: readonly Message[]): unknown[] =>
  messages.map(({ parts }): unknown => parts[0]?.content?.value);

/** How these tests explain a run that has used up its attempts. */
export const crashText = ({ crashCount, lastCrash = 'no news' }: Crashes): string =>
  `Given up after ${crashCount} attempts: ${lastCrash}`;

const LEASE_MS = 30_000;

/** One heartbeat of a worker; the ids of the runs that it has lost. */
export async function beat(
  { database }: Pick<Stores, 'database'>,
  runs: readonly LeaseKey[],
  workerId = 'worker',
  leaseMs = LEASE_MS,
): Promise<string[]> {
  const lost = await heartbeat(database, runs, workerId, leaseMs);
  return lost.map(({ runId }) => runId);
}

/** A new task whose run a worker has claimed. */
export async function startTask({ tasks, runs }: Stores, input: NewTask = newTask()): Promise<ClaimedRun> {
  await tasks.create(input);
  const run = await runs.claim(input.tenantId, input.runId, 'worker', LEASE_MS);
  if (!run) throw new Error('not claimed');
  return run;
}

/** End the turn of a run whose log is at `afterSequence`. */
export const endTurn = (
  { runs }: Stores,
  run: RunKey,
  afterSequence: number,
  state: TaskState = TaskState.TASK_STATE_COMPLETED,
  events: NewEvent[] = [],
  artifacts?: Task['artifacts'],
) =>
  runs.append(run, {
    afterSequence,
    events: [...events, status(run, state)],
    end: { state, outcome: null, artifacts },
  });

/** Ends the lease of a run, as if its worker had been silent for long enough. */
export const expire = async (stores: Pick<Stores, 'database'>, runId: string): Promise<void> => {
  await sql(stores, `UPDATE runs SET lease_expires_at = now() - interval '1 second' WHERE id = '${runId}'`);
};

/** Takes the runs with expired leases back, as the sweeper does. */
export const reclaim = async ({ runs }: Pick<Stores, 'runs'>) =>
  runs.reclaimExpired(10, (await runs.findWork(60_000)).at);

/** As if all pauses were over: the run of the tenant is enqueued. */
export const dispatchNow = async (stores: Stores, tenantId: string): Promise<void> => {
  await sql(stores, `UPDATE runs SET not_before = now() - interval '1 ms' WHERE not_before IS NOT NULL`);
  expect(await stores.dispatch.dispatch([{ tenantId, slots: 1, maxInFlight: null }], 10)).toHaveLength(1);
};
