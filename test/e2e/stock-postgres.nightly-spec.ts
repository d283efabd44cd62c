import { Client } from 'pg';
import { findPgBouncer, type PgBouncer, startPgBouncer } from '../support/pgbouncer.js';
import { type PrivatePostgres, programs as testPrograms, startPrivatePostgres } from '../support/postgres.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';
import { debianPostgres } from '../support/stock-postgres.js';
import { completes, followToCompletion } from '../support/streams.js';

/** Debian's: unlike that of npm, it compiles expensive statements (JIT). */
const programs = testPrograms ?? debianPostgres();
const binary = findPgBouncer();
const title = programs
  ? 'A Postgres that compiles statements'
  : 'A Postgres that compiles statements, left out: there is none of Debian';

(programs ? describe : describe.skip)(title, () => {
  let postgres: PrivatePostgres;
  let bouncer: PgBouncer | undefined;
  let stack: Stack;

  beforeAll(async () => {
    // Its log has every plan.
    const settings = {
      session_preload_libraries: 'auto_explain',
      'auto_explain.log_min_duration': '0',
      'auto_explain.log_analyze': 'on',
      'auto_explain.log_timing': 'off',
      log_line_prefix: '%a: ',
    };
    postgres = await startPrivatePostgres({ ...(programs && { programs }), settings });
    stack = await Stack.start({ driver: 'postgres', database: postgres });
    if (binary) {
      bouncer = await startPgBouncer(binary, postgres.url, 3);
      await stack.addApi({ DATABASE_URL: bouncer.url, DATABASE_DIRECT_URL: postgres.url });
    }
  });
  afterAll(async () => {
    await stack.stop();
    await bouncer?.remove();
  });

  /** Names of the programs whose statements it has compiled. */
  const compiled = (): string[] => {
    let program = '';
    const found = new Set<string>();
    for (const line of postgres.log().split('\n')) {
      program = /^(\S*): LOG: {2}duration/.exec(line)?.[1] ?? program;
      if (/^\s+JIT:/.test(line)) found.add(program);
    }
    return [...found].sort();
  };

  it('compiles no statement of Baton, of whatever connection', async () => {
    const { token, slug } = await stack.createTenant();
    const admin = await stack.createToken(slug, 'admin');
    for (const api of stack.apis.keys()) {
      const caller = new RawCaller(stack.url(api), token);
      const params = sendParams('hello', { metadata: { echo: { chunks: 5 } } });
      const frames = await followToCompletion(caller, params, {
        again: () => stack.url(api),
        onFrame: () => undefined,
      });
      expect(completes(frames.at(-1))).toBe(true);
      expect((await caller.call('ListTasks', {})).result).toMatchObject({ tasks: expect.any(Array) });
      const headers = { authorization: `Bearer ${admin}` };
      expect((await fetch(`${stack.apis[api]!.url}/v1/tokens`, { headers })).status).toBe(200);
    }
    await stack.baton('tokens', 'list', '--tenant', slug);
    await stack.baton('doctor', '--json').catch(() => undefined);
    // The same kind of statement in a session that asks for nothing else, it does compile.
    const client = new Client({
      connectionString: postgres.url,
      application_name: 'test',
      options: '-c enable_seqscan=off',
    });
    await client.connect();
    await client.query('CREATE TEMP TABLE few AS SELECT 1 AS n; SELECT count(*) FROM few');
    await client.end();
    const programsSeen = new Set(
      [...postgres.log().matchAll(/^([\w-]+): LOG: {2}duration/gm)].map(([, name]) => name),
    );
    expect([...programsSeen]).toEqual(
      expect.arrayContaining(['baton', 'baton-catalog', 'baton-messaging', 'baton-migrate', 'baton-doctor']),
    );
    expect(compiled().filter((name) => name.startsWith('baton'))).toEqual([]);
    expect(compiled()).toContain('test');
  });
});
