import { type Task, TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import type { ClaimedRun } from '../index.js';
import {
  artifactChunk,
  crashText,
  expire,
  newTask,
  openStores,
  reclaim,
  sql,
  startTask,
  type Stores,
  texts,
} from '../stores.fixture.js';
import { artifactKey } from '../log/artifact-key.js';

const { TASK_STATE_CANCELED, TASK_STATE_FAILED } = TaskState;
/** Longer than any wait of this file. */
const LEASE_MS = 300_000;
const KIB = 1024;

let stores: Stores;
beforeAll(async () => {
  stores = await openStores();
});
afterAll(async () => stores.close());

const lengths = (task: Pick<Task, 'artifacts'>): number[] => texts(task).map((text) => String(text).length);

describe('a log that is larger than any value of Postgres (1 GiB) and any string of V8 (512 MiB)', () => {
  const EVENTS = 280;

  /** Chunks of 4 MiB in the log, as this release or an earlier one has written them. */
  async function fill(run: ClaimedRun, by: 'this-release' | 'an-earlier-release'): Promise<void> {
    const [before, after] = artifactChunk(run, 'reply', 'CUT').json.split('CUT');
    const [artifact, bytes] = by === 'this-release' ? [artifactKey('reply'), 4_194_700] : ['NULL', 'NULL'];
    const insert = `INSERT INTO task_events (tenant_id, task_id, sequence, attempt, payload, artifact, bytes)`;
    const ids = `'${run.tenantId}', '${run.taskId}'`;
    const payload = `('${before}' || repeat('x', 4194304) || '${after}')::json`;
    await sql(stores, `${insert} SELECT ${ids}, 3, 1, ${payload}, ${artifact}, ${bytes}`);
    await sql(
      stores,
      `${insert} SELECT ${ids}, n, 1, e.payload, ${artifact}, ${bytes}
       FROM task_events e, generate_series(4, ${EVENTS + 2}) AS n WHERE e.task_id = '${run.taskId}' AND e.sequence = 3`,
    );
    await sql(
      stores,
      `UPDATE tasks SET last_sequence = ${EVENTS + 2}, open_bytes = ${EVENTS * 4_194_700} WHERE id = '${run.taskId}'`,
    );
  }

  it.each(['this-release', 'an-earlier-release'] as const)(
    'is reclaimed, read, listed, canceled and given up; %s has written it',
    async (by) => {
      const context = { tenantId: randomUUID(), task: { contextId: randomUUID() } };
      const run = await startTask(stores, newTask(context));
      const { tenantId, taskId } = run;
      await fill(run, by);
      const shown = [4 * KIB * KIB, 4 * KIB * KIB, 4 * KIB * KIB];
      expect(lengths((await stores.tasks.get(tenantId, taskId))!.task)).toEqual(shown);
      const list = { tenantId, pageSize: 10, includeArtifacts: true };
      expect(lengths((await stores.tasks.list(list)).tasks[0]!.task)).toEqual(shown);

      await expire(stores, run.runId);
      await reclaim(stores);
      const again = (await stores.runs.claim(tenantId, run.runId, 'other', LEASE_MS))!;
      expect(again).toMatchObject({
        attempt: 2,
        snapshot: { sequence: EVENTS + 2 },
        artifactsAreWhole: false,
      });

      const later = await startTask(stores, newTask(context));
      const [earlier] = await stores.tasks.listContext(
        tenantId,
        'echo',
        context.task.contextId,
        later.taskId,
        5,
      );
      expect(lengths(earlier!.task)).toEqual(shown);

      await sql(stores, `UPDATE runs SET max_attempts = 2 WHERE id = '${run.runId}'`);
      if (by === 'this-release') {
        expect(await stores.tasks.cancel(tenantId, 'echo', taskId)).toMatchObject({ ok: true });
      } else {
        await expire(stores, run.runId);
        const failed = await stores.runs.failPoisoned(10, (await stores.runs.findWork(60_000)).at, crashText);
        expect(failed).toMatchObject([{ taskId }]);
        await stores.runs.keepArtifacts(tenantId, taskId);
      }
      const ended = (await stores.tasks.get(tenantId, taskId))!.task;
      expect([ended.status?.state, lengths(ended)]).toEqual([
        by === 'this-release' ? TASK_STATE_CANCELED : TASK_STATE_FAILED,
        shown,
      ]);
    },
  );
});
