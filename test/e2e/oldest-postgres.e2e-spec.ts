import { existsSync } from 'node:fs';
import { Client } from 'pg';
import { inspectDatabase } from '../../libs/database/src/index.js';
import { programsOf, startPrivatePostgres } from '../support/postgres.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';
import { completes, followToCompletion, increasing, textsOf } from '../support/streams.js';

/** The oldest that `baton doctor` accepts, or the one that `npm run test:postgres` names. */
const RELEASE = process.env.TEST_POSTGRES ?? '14';
const programs = programsOf(RELEASE);
const CHUNKS = 20;

const isThere = existsSync(programs);
const title = isThere
  ? `Postgres ${RELEASE}`
  : `Postgres ${RELEASE}, left out: \`npm run test:postgres -- ${RELEASE} --fetch\` fetches it`;

(isThere ? describe : describe.skip)(title, () => {
  let stack: Stack;
  let token: string;
  let slug: string;

  beforeAll(async () => {
    const database = await startPrivatePostgres({ programs });
    // Postgres carries the queue and the signals as well.
    stack = await Stack.start({ driver: 'postgres', database, env: { RETENTION_SWEEP_MS: '100' } });
    ({ token, slug } = await stack.createTenant());
  });
  afterAll(() => stack.stop());

  it('takes every migration, and isolates tenants', async () => {
    const facts = await inspectDatabase(stack.database.url, undefined);
    expect({ ...facts, release: facts.version.split('.', 1)[0] }).toMatchObject({
      release: RELEASE,
      rowSecurity: undefined,
      migrations: { pending: [], unknown: [], unfinished: [] },
    });
  });

  it('serves a task from its message to its deletion: stream, resume, list, get, retention', async () => {
    const caller = new RawCaller(stack.url(0), token);
    const frames = await followToCompletion(
      caller,
      sendParams('hello', { metadata: { echo: { chunks: CHUNKS } } }),
      {
        again: () => stack.url(0),
        onFrame: () => undefined,
      },
    );
    expect([frames[0]?.id, increasing(frames), completes(frames.at(-1))]).toEqual([1, true, true]);
    expect(textsOf(frames)).toEqual(Array(CHUNKS).fill('hello'));
    const { id } = frames[0]!.data.result!.task as { id: string };

    const listed = await caller.call('ListTasks', { status: 'TASK_STATE_COMPLETED' });
    expect(listed.result).toMatchObject({ tasks: [{ id }], totalSize: 1 });
    expect((await caller.call('GetTask', { id })).result).toMatchObject({ id });

    const client = new Client({ connectionString: stack.database.url });
    await client.connect();
    await client.query(`SET baton.tenant = 'system'`);
    await client.query('UPDATE tenants SET limits = $1 WHERE slug = $2', [
      '{"retentionDays":0.000002}',
      slug,
    ]);
    while ((await client.query('SELECT FROM task_events')).rowCount !== 0) {
      await new Promise((resolve) => setTimeout(resolve, 20));
    }
    await client.end();
    expect((await caller.call('GetTask', { id })).error).toMatchObject({ code: -32001 });
  });
});
