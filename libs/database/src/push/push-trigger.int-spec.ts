import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import type { Database, Statement } from '../connection/database.js';
import { PLATFORM_ACTOR } from '../audit/audit-records.js';
import { DeadPushStore, RetentionStore, type RunKey, WebhookDeliveryStore } from '../index.js';
import {
  chunk,
  endTurn,
  newTask,
  openStores,
  sql,
  startTask,
  type Stores,
  textMessage,
} from '../stores.fixture.js';

// Whatever appends to the log of a task makes its configs due, in the same transaction.

const WEBHOOK_ID = randomUUID();

let stores: Stores;

beforeAll(async () => {
  stores = await openStores();
});
afterAll(() => stores.close());

interface Config {
  state: string;
  delivered_sequence: number;
  head_sequence: number;
  is_due: boolean;
}

/** Makes configs of a task that know its log up to now. */
async function addConfigs({ tenantId, taskId }: RunKey, ...ids: string[]): Promise<void> {
  await sql(
    stores,
    `WITH task AS (
       UPDATE tasks SET push_configs = push_configs + ${ids.length} WHERE id = '${taskId}' RETURNING last_sequence
     )
     INSERT INTO push_configs (tenant_id, task_id, id, url, protocol, delivered_sequence, head_sequence)
     SELECT '${tenantId}', '${taskId}', unnest(ARRAY['${ids.join("','")}']), 'https://example.com', '1.0', last_sequence,
       last_sequence FROM task`,
  );
}

const configsOf = async ({ taskId }: RunKey): Promise<Config[]> =>
  (await sql(
    stores,
    `SELECT state, delivered_sequence, head_sequence, due_at IS NOT NULL AS is_due FROM push_configs
     WHERE task_id = '${taskId}' ORDER BY id`,
  )) as Config[];

/** As a worker completes a delivery: the config is due again if the log has grown meanwhile. $1 task $2 sequence */
const COMPLETE: Statement = {
  text: `UPDATE push_configs SET delivered_sequence = $2, due_at = CASE WHEN head_sequence > $2 THEN now() END
    WHERE task_id = $1`,
};
/** $1 tenant $2 task */
const APPEND: Statement = {
  text: 'UPDATE tasks SET last_sequence = last_sequence + 1 WHERE tenant_id = $1 AND id = $2',
};

const complete = (database: Database, { tenantId, taskId }: RunKey, sequence: number) =>
  database.tenantQuery(tenantId, COMPLETE, [taskId, sequence]);

const append = (run: RunKey, afterSequence: number, count = 1) =>
  stores.runs.append(run, { afterSequence, events: Array.from({ length: count }, () => chunk(run, 'a')) });

/** Until a statement waits for the lock of a row, or has ended without. */
async function untilOneWaits(hasEnded: () => boolean = () => false): Promise<void> {
  for (;;) {
    const waiting = await sql(
      stores,
      `SELECT FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'`,
    );
    if (waiting.length > 0 || hasEnded()) return;
  }
}

it('what a run appends makes all active configs of its task due', async () => {
  const run = await startTask(stores, newTask());
  const other = await startTask(stores, newTask({ tenantId: run.tenantId }));
  await addConfigs(run, 'a', 'b', 'c');
  await addConfigs(other, 'a');
  await sql(stores, `UPDATE push_configs SET state = 'ended' WHERE task_id = '${run.taskId}' AND id = 'b'`);
  expect((await configsOf(run)).map(({ is_due: isDue }) => isDue)).toEqual([false, false, false]);
  await append(run, 2, 2);
  const due = { state: 'active', delivered_sequence: 2, head_sequence: 4, is_due: true };
  const ended = { state: 'ended', delivered_sequence: 2, head_sequence: 2, is_due: false };
  expect(await configsOf(run)).toEqual([due, ended, due]);
  expect(await configsOf(other)).toMatchObject([{ head_sequence: 2, is_due: false }]);
});

it('so do the end of a turn, another message, and a cancel', async () => {
  const run = await startTask(stores, newTask());
  const { tenantId, taskId } = run;
  await addConfigs(run, 'a');
  const isDueAt = async (sequence: number) => {
    expect(await configsOf(run)).toMatchObject([{ head_sequence: sequence, is_due: true }]);
    await complete(stores.database, run, sequence);
    expect(await configsOf(run)).toMatchObject([{ head_sequence: sequence, is_due: false }]);
  };
  await endTurn(stores, run, 2, TaskState.TASK_STATE_INPUT_REQUIRED);
  await isDueAt(3);
  const next = { agentId: 'echo', runId: randomUUID(), message: textMessage('more'), extensions: [] };
  await stores.tasks.continue({ tenantId, taskId, ...next });
  await isDueAt(4);
  await stores.tasks.cancel(tenantId, null, taskId);
  await isDueAt(5);
});

it('an append that is refused, and one that is rolled back, notify no worker', async () => {
  const run = await startTask(stores, newTask());
  await addConfigs(run, 'a');
  await append(run, 1);
  const rolledBack = stores.database.inTenant(run.tenantId, async (transaction) => {
    await transaction.query(APPEND, [run.tenantId, run.taskId]);
    throw new Error('rolled back');
  });
  await expect(rolledBack).rejects.toThrow('rolled back');
  expect(await configsOf(run)).toMatchObject([{ head_sequence: 2, is_due: false }]);
});

it('a time that is set stays: a retry waits for it', async () => {
  const run = await startTask(stores, newTask());
  await addConfigs(run, 'a');
  await sql(stores, `UPDATE push_configs SET due_at = '2100-01-01' WHERE task_id = '${run.taskId}'`);
  await append(run, 2);
  const found = await sql(stores, `SELECT due_at FROM push_configs WHERE task_id = '${run.taskId}'`);
  expect(found).toEqual([{ due_at: new Date('2100-01-01') }]);
});

describe('a wake-up is not lost', () => {
  it('when the log grows while a delivery is being completed', async () => {
    const run = await startTask(stores, newTask());
    await addConfigs(run, 'a');
    await append(run, 2);
    let appended: Promise<unknown> | undefined;
    await stores.database.inTenant(run.tenantId, async (transaction) => {
      await transaction.query(COMPLETE, [run.taskId, 3]);
      appended = append(run, 3);
      await untilOneWaits();
    });
    await appended;
    expect(await configsOf(run)).toMatchObject([{ delivered_sequence: 3, head_sequence: 4, is_due: true }]);
  });

  it('when a delivery is completed while the log grows', async () => {
    const run = await startTask(stores, newTask());
    await addConfigs(run, 'a');
    await append(run, 2);
    let completed: Promise<unknown> | undefined;
    await stores.database.inTenant(run.tenantId, async (transaction) => {
      await transaction.query(APPEND, [run.tenantId, run.taskId]);
      completed = complete(stores.database, run, 3);
      await untilOneWaits();
    });
    await completed;
    expect(await configsOf(run)).toMatchObject([{ delivered_sequence: 3, head_sequence: 4, is_due: true }]);
  });

  it.each<[string, (run: RunKey) => Promise<unknown>, string]>([
    [
      'its dead configs are delivered again',
      ({ tenantId, taskId }) =>
        new DeadPushStore(stores.database).redeliver({ tenantId, taskId }, undefined, PLATFORM_ACTOR),
      `state = 'dead'`,
    ],
    [
      'a webhook gets it again',
      ({ tenantId, taskId }) =>
        new WebhookDeliveryStore(stores.database).redeliver(tenantId, WEBHOOK_ID, taskId, PLATFORM_ACTOR),
      `state = 'dead', webhook_id = '${WEBHOOK_ID}'`,
    ],
  ])('when the log of a task grows while %s', async (_, redeliver, columns) => {
    const run = await startTask(stores, newTask());
    const other = await startTask(stores, newTask({ tenantId: run.tenantId }));
    await addConfigs(run, 'a');
    await addConfigs(other, 'a');
    await sql(stores, `UPDATE push_configs SET ${columns} WHERE tenant_id = '${run.tenantId}'`);
    const { redelivered } = await stores.database.inTenant(run.tenantId, async (transaction) => {
      await transaction.query(APPEND, [run.tenantId, run.taskId]);
      let ended = false;
      const redelivering = redeliver(run).finally(() => (ended = true));
      await untilOneWaits(() => ended);
      return { redelivered: redelivering };
    });
    await redelivered;
    expect(await configsOf(run)).toMatchObject([{ state: 'active', head_sequence: 3, is_due: true }]);
    expect(await configsOf(other)).toMatchObject([{ state: 'dead', head_sequence: 2, is_due: false }]);
  });

  it('whatever the order', async () => {
    const run = await startTask(stores, newTask());
    await addConfigs(run, 'a');
    let isOver = false;
    const deliver = async (): Promise<void> => {
      for (;;) {
        const wasOver = isOver;
        const [config] = await configsOf(run);
        if (config?.is_due) await complete(stores.database, run, config.head_sequence);
        else if (wasOver) return;
      }
    };
    const delivering = deliver();
    for (let head = 2; head < 60; head++) await append(run, head);
    isOver = true;
    await delivering;
    expect(await configsOf(run)).toMatchObject([
      { delivered_sequence: 60, head_sequence: 60, is_due: false },
    ]);
  });
});

it('the configs of a task go with it', async () => {
  const run = await startTask(stores, newTask());
  const other = await startTask(stores, newTask({ tenantId: run.tenantId }));
  await addConfigs(run, 'a');
  await addConfigs(other, 'a');
  await endTurn(stores, run, 2);
  await sql(stores, `UPDATE tasks SET status_at = 'epoch' WHERE id = '${run.taskId}'`);
  await new RetentionStore(stores.database).expire([{ tenantId: run.tenantId, days: 7 }], 10);
  expect([await configsOf(run), await configsOf(other)]).toMatchObject([[], [{ state: 'active' }]]);
});
