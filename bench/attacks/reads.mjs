// Attacks of bench/neighbours.mjs with reads of a tenant that has READ_TASKS (100,000) tasks, one of them with 50,000 events.
import { connect, fillHuge, fillTenant } from '../fill.mjs';
import { numberSetting } from '../number-setting.mjs';

const TASKS = numberSetting('READ_TASKS', 100_000);
const HUGE_EVENTS = 50_000;
const EVENTS = 4;

/** Fills the database once. */
async function fill(a) {
  if (a.huge) return;
  const client = await connect(a.baton.ownerUrl, a.baton.home);
  const { rows } = await client.query(`SELECT id FROM tenants WHERE slug = 'demo'`);
  await fillTenant(client, rows[0].id, TASKS, EVENTS, () => undefined);
  a.huge = await fillHuge(client, rows[0].id, HUGE_EVENTS, () => undefined);
  await client.query('ANALYZE');
  await client.end();
}

const pick = (list) => list[Math.floor(Math.random() * list.length)];
const rpc = (method, params) => JSON.stringify({ jsonrpc: '2.0', id: 1, method, params });

const LISTS = [
  { pageSize: 100 },
  { pageSize: 100, includeArtifacts: true, historyLength: 100 },
  { pageSize: 100, status: 'TASK_STATE_FAILED', includeArtifacts: true },
  { pageSize: 1, contextId: 'long-conversation' },
  { pageSize: 100, contextId: 'long-conversation', status: 'TASK_STATE_COMPLETED', includeArtifacts: true },
  { pageSize: 100, statusTimestampAfter: '2020-01-01T00:00:00Z' },
];
const REST_LISTS = [
  'tasks?limit=100&counts=true',
  'tasks?limit=1&counts=true&agent=echo&context_id=long-conversation',
  'tasks?limit=100&state=failed&until=2036-01-01T00:00:00Z',
  'tasks?limit=100&owner=nobody',
  'tasks?limit=100&owner=nobody&state=completed&counts=true',
  'tasks?answerable=true&limit=100',
  'tasks?parked=true',
];
const attack = (act) => ({ isMany: true, prepare: fill, act });
const get = (a, path) => a.request('GET', `/v1/${path}`);

export const READ_ATTACKS = {
  'reads: ListTasks': attack((a) => a.request('POST', '/agents/echo', rpc('ListTasks', pick(LISTS)))),
  'reads: lists': attack((a) => get(a, pick(REST_LISTS))),
  'reads: search': attack((a) => get(a, `tasks?limit=100&q=${crypto.randomUUID().slice(0, 6)}`)),
  'reads: usage': attack((a) =>
    get(a, `usage?by=${pick(['day', 'agent', 'owner', 'token', 'model'])}&since=2020-01-01T00:00:00Z`),
  ),
  'reads: audit': attack((a) =>
    get(a, `audit?limit=100&from=2020-01-01T00:00:00Z&action=${pick(['', 'agent.delete'])}`),
  ),
  'reads: trace of a huge task': attack((a) => get(a, `tasks/${a.huge}/trace?limit=100`)),
  'reads: events of a huge task': attack((a) =>
    get(a, `tasks/${a.huge}/${pick(['events', 'event-times', 'logs', 'artifacts'])}`),
  ),
  'reads: previews of bulk operations': attack((a) =>
    a.request(
      'POST',
      '/v1/bulk-operations',
      JSON.stringify({
        action: 'send-again',
        dry_run: true,
        filter: { error: crypto.randomUUID().slice(0, 6) },
      }),
    ),
  ),
};
