import {
  type CallContext,
  type EventPayload,
  type ReadMemory,
  serializePayload,
  SPEC_RULES,
  type StreamItem,
  TaskState,
  textPart,
  tokenPrincipal,
} from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import { type ClaimedRun, Database, RetentionStore, RunStore, TaskStore } from '@baton/database';
import { createMessaging, type Messaging } from '@baton/messaging';
import { Logger, Metrics } from '@baton/telemetry';
import { randomUUID } from 'node:crypto';
import { userMessage } from '../../../../test/support/agents/turns.js';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { Relay } from '../relay/relay.js';
import { ReadOperations } from './read-operations.js';
import { SubscribeOperation } from './subscribe-operation.js';
import { TaskFinder } from './task-finder.js';

const MIB = 1_048_576;
const { TASK_STATE_SUBMITTED, TASK_STATE_WORKING, TASK_STATE_INPUT_REQUIRED, TASK_STATE_CANCELED } =
  TaskState;

let testDatabase: TestDatabase;
let database: Database;
let messaging: Messaging;
let tasks: TaskStore;
let runs: RunStore;
let relay: Relay;
let reads: ReadOperations;
let subscriptions: SubscribeOperation;
beforeAll(async () => {
  testDatabase = await createDatabase();
  database = new Database({ url: testDatabase.url, poolSize: 4 });
  tasks = new TaskStore(database);
  runs = new RunStore(database);
  const environment = loadEnvironment({ DATABASE_URL: testDatabase.url });
  const logger = Logger.silent();
  messaging = createMessaging({ redisUrl: undefined, databaseUrl: testDatabase.url, log: logger });
  await messaging.start(60_000);
  relay = new Relay(tasks, messaging, environment, logger, new Metrics());
  const finder = new TaskFinder(tasks, new RetentionStore(database));
  reads = new ReadOperations(tasks, finder, undefined as never);
  subscriptions = new SubscribeOperation(finder, relay);
});
afterAll(async () => {
  relay.onModuleDestroy();
  await messaging.close();
  await database.close();
  await testDatabase.drop();
});

/** A task at work whose one artifact has 3 MiB, more than comes with a row. */
async function largeTask(): Promise<ClaimedRun> {
  const [tenantId, id, runId] = [randomUUID(), randomUUID(), randomUUID()];
  const message = userMessage('go', { messageId: randomUUID(), contextId: id, taskId: id });
  const status = { state: TASK_STATE_SUBMITTED, message: undefined, timestamp: new Date().toISOString() };
  const task = { id, contextId: id, status, artifacts: [], history: [message], metadata: undefined };
  await tasks.create({ tenantId, agentId: 'echo', runId, task, extensions: [] });
  const run = (await runs.claim(tenantId, runId, 'worker', 30_000))!;
  for (let i = 0; i < 3; i++) await write(run, 2 + i, said(run));
  return run;
}

const said = ({ taskId }: ClaimedRun): EventPayload => ({
  $case: 'artifactUpdate',
  value: {
    taskId,
    contextId: taskId,
    artifact: {
      artifactId: 'a',
      name: '',
      description: '',
      parts: [textPart('x'.repeat(MIB))],
      metadata: undefined,
      extensions: [],
    },
    append: true,
    lastChunk: false,
    metadata: undefined,
  },
});

async function write(run: ClaimedRun, after: number, payload: EventPayload, end = {}): Promise<void> {
  const events = [{ payload, json: serializePayload(payload) }];
  expect(await runs.append(run, { afterSequence: after, events, ...end })).toMatchObject({ ok: true });
  await tell(run, after + 1);
}

/** Its turn ends with a question. */
async function ask(run: ClaimedRun, after: number): Promise<void> {
  const { taskId } = run;
  const state = TASK_STATE_INPUT_REQUIRED;
  const status = { state, message: undefined, timestamp: new Date().toISOString() };
  const value = { taskId, contextId: taskId, status, metadata: undefined };
  await write(run, after, { $case: 'statusUpdate', value }, { end: { state, outcome: null, artifacts: [] } });
}

const tell = ({ tenantId, taskId }: ClaimedRun, lastSequence: number): Promise<void> =>
  messaging.publishTask(tenantId, taskId, { lastSequence, events: [] });

/** A call for the status alone. @param taken gets the memory that it takes */
function callOf({ tenantId }: ClaimedRun, taken: number[]): CallContext {
  const memory: ReadMemory = {
    take: async (bytes) => {
      taken.push(bytes);
      return true;
    },
    giveBack: () => undefined,
    turn: async () => undefined,
  };
  return {
    tenantId,
    principal: tokenPrincipal('token'),
    scopes: ['tasks:read'],
    access: 'read',
    agent: { id: 'echo' },
    rules: { ...SPEC_RULES, artifacts: 'left-out', streamEnds: 'with-task' },
    memory,
  } as unknown as CallContext;
}

const stateOf = ({ payload: { $case, value } }: StreamItem): TaskState | undefined =>
  $case === 'artifactUpdate' ? undefined : value.status?.state;

describe('the status of a large task', () => {
  it('is read without its artifacts', async () => {
    const run = await largeTask();
    const taken: number[] = [];
    const task = await reads.getTask(callOf(run, taken), {
      tenant: '',
      id: run.taskId,
      historyLength: 0,
    });
    expect([task.status?.state, task.artifacts, task.metadata, taken]).toEqual([
      TASK_STATE_WORKING,
      [],
      undefined,
      [],
    ]);
  });

  it('is followed over all its turns, without the artifacts before', async () => {
    const run = await largeTask();
    const taken: number[] = [];
    const call = callOf(run, taken);
    const items = subscriptions.subscribeToTask(
      call,
      { tenant: '', id: run.taskId },
      new AbortController().signal,
    );
    const states: unknown[] = [];
    for await (const batch of items) {
      const [item] = batch;
      if (item?.payload.$case === 'task') expect(item.payload.value.artifacts).toEqual([]);
      const state = item && stateOf(item);
      states.push(state);
      if (state === TASK_STATE_WORKING) await ask(run, 5);
      if (state !== TASK_STATE_INPUT_REQUIRED) continue;
      await tasks.cancel(run.tenantId, 'echo', run.taskId);
      await tell(run, 7);
    }
    expect([states, taken]).toEqual([
      [TASK_STATE_WORKING, TASK_STATE_INPUT_REQUIRED, TASK_STATE_CANCELED],
      [],
    ]);
  });
});
