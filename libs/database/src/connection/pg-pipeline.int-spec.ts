import { Pool, type PoolClient, Query, Result, types, utils } from 'pg';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import type { Statement, Values } from './database.js';
import { arrayText, failedCallOf, sendTransaction } from './pg-pipeline.js';

// What `pg-pipeline.ts` needs of the package `pg` that is not its public interface. If an upgrade of `pg` fails here, read what has
// changed in its lib/query.js, lib/client.js, lib/connection.js and lib/result.js, and change pg-pipeline.ts.

const ADD: Statement = { name: 'contract-add', text: 'SELECT $1::int + $2::int AS sum, $3::text[] AS texts' };
const DIVIDE: Statement = { name: 'contract-divide', text: 'SELECT 1 / $1::int AS quotient' };
const NOTE: Statement = { name: 'contract-note', text: 'INSERT INTO noted VALUES ($1::int)' };

let testDatabase: TestDatabase;
let pool: Pool;
let client: PoolClient;

beforeAll(async () => {
  testDatabase = await createDatabase();
  // oxlint-disable-next-line typescript/no-unsafe-assignment -- `pipeline` is missing in the types of the package
  pool = new Pool({ connectionString: testDatabase.url, max: 1, ...({ pipeline: true } as object) });
  client = await pool.connect();
  await client.query('CREATE TEMP TABLE noted (n int)');
});
afterAll(async () => {
  // The pool does not wait until Postgres has closed the connection. `drop` may close it first, which is an error of the client.
  client.on('error', () => undefined);
  client.release();
  await pool.end();
  await testDatabase.drop();
});

const send = (calls: readonly [Statement, Values][], isPooled = false) =>
  sendTransaction(client, calls, isPooled);
/** The messages that Postgres answers while some work is under way, by their names in pg-protocol. */
async function messagesOf(work: () => Promise<unknown>): Promise<string[]> {
  const { connection } = client as unknown as { connection: NodeJS.EventEmitter };
  const names: string[] = [];
  const note = ({ name }: { name: string }): void => void names.push(name);
  connection.on('message', note);
  // Without it the connection does not emit each message.
  (connection as unknown as { _emitMessage: boolean })._emitMessage = true;
  try {
    await work();
  } finally {
    connection.off('message', note);
  }
  return names;
}

describe('the parts of pg that the pipeline uses', () => {
  it('are there: the methods that pg calls on a query, those of its connection, and its result', () => {
    const { connection } = client as unknown as { connection: Record<string, unknown> };
    const missing = [
      ...['parse', 'bind', 'describe', 'execute', 'sync'].filter(
        (name) => typeof connection[name] !== 'function',
      ),
      ...['parsedStatements', 'stream'].filter((name) => typeof connection[name] !== 'object'),
      ...[
        'submit',
        'prepare',
        'requiresPreparation',
        'handleRowDescription',
        'handleDataRow',
        'handleCommandComplete',
        'handleEmptyQuery',
        'handleReadyForQuery',
        'handleError',
      ].filter((name) => typeof (Query.prototype as unknown as Record<string, unknown>)[name] !== 'function'),
      ...['addFields', 'parseRow'].filter(
        (name) => typeof (Result.prototype as unknown as Record<string, unknown>)[name] !== 'function',
      ),
      ...(typeof utils.prepareValue === 'function' ? [] : ['utils.prepareValue']),
    ];
    expect(missing).toEqual([]);
    expect(typeof types.getTypeParser(23)).toBe('function');
  });

  it('list the statements that a connection has prepared, by their names', async () => {
    await send([[ADD, [1, 2, []]]]);
    const { connection } = client as unknown as { connection: { parsedStatements: Record<string, string> } };
    expect(connection.parsedStatements[ADD.name!]).toBe(ADD.text);
  });

  it('send prepared statements as one message, and Postgres describes their columns once', async () => {
    const calls: [Statement, Values][] = [
      [ADD, [1, 2, ['a"b', 'c\\d', '{', '', 'NULL', null]]],
      [ADD, [3, 4, []]],
    ];
    await send(calls);
    await send(calls);
    let answers: readonly { rows: unknown[] }[] = [];
    const messages = await messagesOf(async () => {
      answers = await send(calls);
    });
    const answer = ['bindComplete', 'dataRow', 'commandComplete'];
    expect(messages).toEqual([...answer, ...answer, 'readyForQuery']);
    expect(answers.map(({ rows }) => rows)).toEqual([
      [{ sum: 3, texts: ['a"b', 'c\\d', '{', '', 'NULL', null] }],
      [{ sum: 7, texts: [] }],
    ]);
  });

  it.each([
    ['on a connection that keeps its statements', false],
    ['on one of a pooler', true],
  ])('roll back all statements of a transaction when one fails, and say which, %s', async (_, isPooled) => {
    await send([[NOTE, [0]]], isPooled);
    await send([[DIVIDE, [1]]], isPooled);
    const failing = send(
      [
        [NOTE, [1]],
        [DIVIDE, [0]],
        [NOTE, [2]],
      ],
      isPooled,
    );
    const error: unknown = await failing.catch((reason: unknown) => reason);
    expect(error).toMatchObject({ code: '22012' });
    expect(failedCallOf(error as object)).toBe(1);
    const { rows } = await client.query('SELECT n FROM noted WHERE n > 0');
    expect([rows, client.getTransactionStatus()]).toEqual([[], 'I']);
  });

  it('leave no prepared statement on a connection of a pooler', async () => {
    const text = 'SELECT $1::int AS n';
    await send([[{ name: 'contract-pooled', text }, [1]]], true);
    const { rows } = await client.query(
      `SELECT name FROM pg_prepared_statements WHERE name = 'contract-pooled'`,
    );
    expect(rows).toEqual([]);
  });

  it('write an array as Postgres reads it', async () => {
    const texts = ['a"b', 'c\\d', '{}', ',', '', 'NULL', null];
    const { rows } = await client.query('SELECT $1::text::text[] AS texts', [arrayText(texts)]);
    expect(rows).toEqual([{ texts }]);
  });
});
