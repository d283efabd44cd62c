// Calls whose duration must not grow with the stored data: a name, the preparation of a round, and one call.
import pageToken from '../dist/libs/a2a/src/page-token.js';
import { message } from './caller.mjs';
import { LONG_CONTEXT } from './fill.mjs';
import { oneByOne, quantile, range } from './load.mjs';

const SAMPLE = 500;
const pick = (list) => list[Math.floor(Math.random() * list.length)];

/** The scenarios for one Baton, with tasks of its own. */
async function scenarios({ caller, client, demo, events, hugeTask, huge }) {
  const { rows: tasks } = await client.query(
    'SELECT id, status_at FROM tasks WHERE tenant_id = $1 AND last_sequence = $2 ORDER BY random() LIMIT $3',
    [demo, events, SAMPLE],
  );
  const { rows: middle } = await client.query(
    `SELECT id, status_at FROM tasks WHERE tenant_id = $1 ORDER BY status_at DESC
     OFFSET (SELECT count(*) / 2 FROM tasks WHERE tenant_id = $1) LIMIT 1`,
    [demo],
  );
  const { rows: said } = await client.query(
    `SELECT id FROM tasks WHERE tenant_id = $1 AND context_id = $2 ORDER BY status_at DESC LIMIT 10`,
    [demo, LONG_CONTEXT],
  );
  const deep = pageToken.encodePageToken({ statusAt: middle[0].status_at, taskId: middle[0].id });
  const waiting = [];
  const ask = async (calls) => {
    waiting.length = 0;
    for (let i = 0; i < calls; i++) {
      const { task } = await caller.call(
        'SendMessage',
        message('?', { metadata: { echo: { askInput: true } } }),
      );
      waiting.push(task.id);
    }
  };
  const list = (params) => () => caller.call('ListTasks', { pageSize: 50, ...params });
  const conversation = { path: '/v1/agents/echo/a2a', version: '0.1' };
  return [
    { name: 'get a task', call: () => caller.call('GetTask', { id: pick(tasks).id }) },
    { name: 'get the task with the huge log', call: () => caller.call('GetTask', { id: hugeTask }) },
    { name: 'list, first page', call: list({}) },
    { name: 'list, a page in the middle', call: list({ pageToken: deep }) },
    { name: 'list of failed tasks (many)', call: list({ status: 'TASK_STATE_FAILED' }) },
    { name: 'list of waiting tasks (few)', call: list({ status: 'TASK_STATE_INPUT_REQUIRED' }) },
    { name: 'list of a long conversation', call: list({ contextId: LONG_CONTEXT }) },
    { name: 'GET /v1/tasks, first page', call: () => caller.get('/v1/tasks') },
    { name: 'GET /v1/tasks, a page in the middle', call: () => caller.get(`/v1/tasks?cursor=${deep}`) },
    {
      name: 'history of a long conversation',
      call: () => caller.call('tasks/get', { id: pick(said).id }, conversation),
    },
    { name: 'resume two events before the end', call: () => caller.resume(pick(tasks).id, events - 2) },
    { name: 'resume the huge log ten events before its end', call: () => caller.resume(hugeTask, huge - 10) },
    { name: 'create a task and run it', call: () => caller.call('SendMessage', message('hello')) },
    {
      name: 'the next task of a long conversation',
      call: () => caller.call('SendMessage', message('hello', { contextId: LONG_CONTEXT })),
    },
    {
      name: 'cancel a task that waits',
      before: ask,
      call: () => caller.call('CancelTask', { id: waiting.pop() }),
    },
  ];
}

/** Each scenario on an almost empty Baton and on a full one, in turns. @returns its name, and the medians of all rounds of each */
export async function inTurns(sides, rounds, calls) {
  const results = [];
  const listed = await Promise.all(sides.map(scenarios));
  for (const [s, { name }] of listed[0].entries()) {
    const values = sides.map(() => []);
    for (let round = -1; round < rounds; round++) {
      for (const [i, side] of listed.entries()) {
        const { call, before } = side[s];
        await before?.(calls);
        const p50 = quantile(await oneByOne(call, calls), 0.5);
        if (round >= 0) values[i].push(p50);
      }
    }
    results.push({ name, values });
    process.stderr.write(`${name}\n`);
  }
  return results;
}

const show = ({ min, median, max }, digits = 1) =>
  `${median.toFixed(digits)} (${min.toFixed(digits)}–${max.toFixed(digits)})`;

/** The rows of a table about results of `inTurns`. */
export const compared = (results) =>
  Object.fromEntries(
    results.map(({ name, values: [small, full] }) => {
      const ratio = full.map((value, round) => value / small[round]);
      return [
        name,
        { 'almost empty': show(range(small)), full: show(range(full)), ratio: show(range(ratio), 2) },
      ];
    }),
  );
