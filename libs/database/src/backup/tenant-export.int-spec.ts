import { PLATFORM_ACTOR } from '../audit/audit-records.js';
import { TaskState } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { PassThrough, Writable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { Client } from 'pg';
import { tenantTables } from '../../../../test/support/sample-rows.js';
import { CatalogClient } from '../connection/catalog-client.js';
import {
  AgentCatalogStore,
  exportTenant,
  importTenant,
  ScheduleStore,
  TaskStore,
  TenantStore,
} from '../index.js';
import {
  artifactChunk,
  endTurn,
  newTask,
  openStores,
  startTask,
  status,
  type Stores,
  textMessage,
} from '../stores.fixture.js';
import { EXPORTED, STAYS } from './tenant-tables.js';

const { TASK_STATE_COMPLETED, TASK_STATE_INPUT_REQUIRED } = TaskState;
/** What JSON, lines and COPY treat in their own ways. */
const ODD = 'NUL \0, lone \ud800, \u2028, "quotes", \\n \\ \n\r\t, \u0001\u0002, 😀, \\.';

let stores: Stores;
/** Another installation. */
let target: Stores;
let catalog: CatalogClient;
let client: Client;
let tenantId: string;

beforeEach(async () => {
  [stores, target] = await Promise.all([openStores(), openStores()]);
  catalog = new CatalogClient(stores.url);
  tenantId = (await new TenantStore(catalog).create('acme', PLATFORM_ACTOR)).id;
  client = new Client({ connectionString: stores.url });
  await client.connect();
  await client.query(`SET baton.tenant = 'system'`);
});
afterEach(async () => {
  await client.end();
  await catalog.close();
  await Promise.all([stores.close(), target.close()]);
});

async function exported(skipRunning = false): Promise<{ file: string; records: Record<string, number> }> {
  const out = new PassThrough();
  const read = buffer(out);
  read.catch(() => undefined);
  const { records } = await exportTenant(stores.url, tenantId, out, { skipRunning });
  return { records, file: (await read).toString() };
}

/** In small pieces, so that lines and characters are cut. */
async function* pieces(file: string): AsyncGenerator<Uint8Array> {
  const bytes = Buffer.from(file);
  for (let at = 0; at < bytes.length; at += 1_000) yield bytes.subarray(at, at + 1_000);
}

/** An ended task with artifacts, and one that asks, with ids of the caller's own. */
async function work(): Promise<string[]> {
  const made = newTask({ tenantId, text: ODD, task: { metadata: { odd: ODD, __proto: [1, 2.5, null] } } });
  const run = await startTask(stores, {
    ...made,
    owner: 'token:1',
    alias: { profile: 'spec', clientId: 'mine' },
    key: { hash: Buffer.alloc(32, 7), content: null, hours: 1 },
  });
  const events = ['one', ODD, 'three'].map((text, at) => artifactChunk(run, 'reply', text, at !== 1));
  await endTurn(stores, run, 2, TASK_STATE_COMPLETED, events);
  const asking = await startTask(stores, newTask({ tenantId }));
  await stores.runs.append(asking, {
    afterSequence: 2,
    events: [status(asking, TASK_STATE_INPUT_REQUIRED, textMessage(`which? ${ODD}`))],
    end: { state: TASK_STATE_INPUT_REQUIRED, outcome: null },
  });
  return [run.taskId, asking.taskId];
}

/** Everything that is read of a task. */
const read = async ({ database }: Stores, tenant: string, taskId: string) => {
  const tasks = new TaskStore(database);
  const events = await database.tenantQuery<{ payload: string }>(
    tenant,
    {
      text: 'SELECT sequence, first_sequence, payload::text, artifact, bytes, created_at FROM task_events WHERE task_id = $1 ORDER BY 1',
    },
    [taskId],
  );
  // Postgres itself has written some of the events, with other white space.
  const parsed = events.map(({ payload, ...event }) => ({
    ...event,
    payload: JSON.parse(payload) as unknown,
  }));
  return {
    task: await tasks.get(tenant, taskId),
    log: await tasks.readEvents(tenant, taskId, 0, 100),
    events: parsed,
  };
};

it('an imported tenant has the same tasks, logs, ids, agents and versions', async () => {
  const ids = await work();
  const agents = new AgentCatalogStore(catalog);
  const definition = {
    name: ODD.replaceAll('\0', ''),
    description: 'd',
    version: '1',
    runtime: 'echo',
    config: {},
  };
  const rest = { skills: [], inputModes: [], outputModes: [], extensions: [] };
  const agent = { slug: 'helper', definition: { ...definition, ...rest }, enabled: true, by: 'operator' };
  const { id: agentId } = await agents.create({ tenantId, ...agent }, PLATFORM_ACTOR);
  const lists = { egressAllow: ['*.example.com', '10.0.0.0/8'], egressDeny: ['evil.example.com'] };
  await new TenantStore(catalog).set('acme', lists, PLATFORM_ACTOR);
  const { file, records } = await exported();
  expect(records).toMatchObject({
    agent: 1,
    agent_version: 1,
    task: 2,
    event: 5,
    alias: 1,
    message_key: 1,
    run: 2,
  });
  expect(file.split('\n').every((line) => line === '' || JSON.parse(line) !== null)).toBe(true);

  for (const [slug, into] of [
    ['elsewhere', target],
    ['copy', stores],
  ] as const) {
    const imported = await importTenant(into.url, slug, pieces(file), PLATFORM_ACTOR);
    expect(imported).toMatchObject({ slug, secrets: [], pausedSchedules: 0 });
    const text =
      'SELECT egress_allow AS "egressAllow", egress_deny AS "egressDeny" FROM tenants WHERE slug = $1';
    expect(await into.database.systemQuery({ text }, [slug])).toEqual([lists]);
    for (const id of ids) {
      const there = await read(into, imported.id, id);
      expect(there.events.length).toBeGreaterThan(1);
      expect(there).toEqual(await read(stores, tenantId, id));
    }
    const tasks = new TaskStore(into.database);
    const own = { owner: 'token:1', unowned: false };
    expect(
      await tasks.findAlias({ tenantId: imported.id, profile: 'spec', clientId: 'mine', own }),
    ).toMatchObject({
      taskId: ids[0],
    });
    const key = { hash: Buffer.alloc(32, 7), content: null, hours: 1 };
    expect(await tasks.earlierTurn(imported.id, key)).toMatchObject({ taskId: ids[0] });
    const targetCatalog = new CatalogClient(into.url);
    const agentOf = async (of: CatalogClient, tenant: string) => {
      const store = new AgentCatalogStore(of);
      return [await store.find(tenant, 'helper'), await store.versions(tenant, agentId, 10)];
    };
    expect(await agentOf(targetCatalog, imported.id)).toEqual(await agentOf(catalog, tenantId));
    await targetCatalog.close();
  }
  // The one that was exported is as it was.
  expect((await read(stores, tenantId, ids[0]!)).task).toBeDefined();
});

it('schedules are paused, with new ids: two tenants must not tick for each other', async () => {
  const schedules = new ScheduleStore(stores.database);
  const nextAt = new Date(Date.now() - 1_000);
  const spec = {
    name: 'report',
    agent: 'echo',
    message: textMessage(ODD),
    cron: '* * * * *',
    at: null,
    ...({ timeZone: 'UTC', overlap: 'skip', missed: 'skip', context: 'new' } as const),
    startsAt: null,
    endsAt: null,
    maxCount: null,
    paused: false,
  };
  const { id } = await schedules.create({ tenantId, id: randomUUID(), nextAt, ...spec }, PLATFORM_ACTOR);
  const imported = await importTenant(
    target.url,
    'elsewhere',
    pieces((await exported()).file),
    PLATFORM_ACTOR,
  );
  expect(imported.pausedSchedules).toBe(1);
  const there = new ScheduleStore(target.database);
  const found = await there.find(imported.id, 'report');
  expect(found).toMatchObject({ ...spec, paused: true, nextAt: null });
  expect(found!.id).not.toBe(id);
  expect(await there.takeDue(1_000, 0, 10)).toEqual([]);
});

it('no token and no secret is in the file, but the names of the secrets', async () => {
  await client.query(
    `INSERT INTO api_tokens (id, tenant_id, name, hash, prefix, scopes) VALUES (gen_random_uuid(), $1, 'ci', 'hash-of-it', 'baton_x', '{}')`,
    [tenantId],
  );
  await client.query(
    `INSERT INTO secrets (tenant_id, name, key_id, nonce, ciphertext) VALUES ($1, 'openai', 'k', 'nonce', 'ciphertext')`,
    [tenantId],
  );
  const { file } = await exported();
  expect(file).not.toMatch(/hash-of-it|ciphertext|6369706865/);
  expect((await importTenant(target.url, 'elsewhere', pieces(file), PLATFORM_ACTOR)).secrets).toEqual([
    'openai',
  ]);
});

it('every table of tenants is exported, or is known to stay', async () => {
  const known = new Set([...EXPORTED.map(({ table }) => table), ...Object.keys(STAYS)]);
  expect((await tenantTables(client)).filter((table) => !known.has(table))).toEqual([]);
});

it('a run cannot move: its task refuses the export, or is left out with its log', async () => {
  const [ended] = await work();
  const running = await startTask(stores, newTask({ tenantId }));
  await expect(exported()).rejects.toThrow(/^1 tasks of "acme" are running or queued, .* --skip-running\.$/);
  const { file } = await exported(true);
  expect(file).not.toContain(running.taskId);
  const { id } = await importTenant(target.url, 'elsewhere', pieces(file), PLATFORM_ACTOR);
  expect((await read(target, id, ended!)).task).toBeDefined();
});

it('an incomplete export leaves nothing behind', async () => {
  await work();
  const { file } = await exported();
  const lines = file.trimEnd().split('\n');
  const refusals: [string, RegExp][] = [
    ['', /does not begin with its header/],
    ['{"kind":"task"}', /does not begin with its header/],
    [lines.slice(0, -1).join('\n'), /its end is missing/],
    [[...lines.slice(0, 3), ...lines.slice(4)].join('\n'), /lines of the kind \w+ instead of/],
    [file.replace('"version":1', '"version":2'), /in a newer format/],
    [file.replace('"kind":"task"', '"kind":"new"'), /in a newer format/],
    [file.replace('"egressDeny":[]', '"egressDeny":["~evil"]'), /in a newer format/],
    [file.replace('"agent_id"', '"agent"'), /in a newer format/],
    [file.replace('"last_sequence":', '"last_sequence":"x'), /is not a JSON object/],
    [file.replace('"attempt":1', '"attempt":"x"'), /does not fit/],
  ];
  for (const [text, reason] of refusals) {
    await expect(importTenant(target.url, 'elsewhere', pieces(text), PLATFORM_ACTOR)).rejects.toThrow(reason);
  }
  const counts = await target.database.systemQuery(
    {
      text: 'SELECT (SELECT count(*)::int FROM tenants) AS tenants, (SELECT count(*)::int FROM tasks) AS tasks',
    },
    [],
  );
  expect(counts).toEqual([{ tenants: 0, tasks: 0 }]);
  await importTenant(target.url, 'elsewhere', pieces(file), PLATFORM_ACTOR);
  await expect(importTenant(target.url, 'elsewhere', pieces(file), PLATFORM_ACTOR)).rejects.toThrow(
    'already exists',
  );
});

it('a reader that stops ends the export', async () => {
  await work();
  const gone = new Writable({ write: (_chunk, _encoding, done) => done(new Error('the disk is full')) });
  await expect(exportTenant(stores.url, tenantId, gone, { skipRunning: false })).rejects.toThrow(
    'the disk is full',
  );
});
