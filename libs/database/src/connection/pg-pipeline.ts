import {
  type Client,
  DatabaseError,
  type FieldDef,
  type PoolClient,
  Query,
  type QueryResult,
  type QueryResultRow,
  Result,
  types,
  utils,
} from 'pg';
import type { Statement, Values } from '../sql/statement.js';

// A whole transaction as one message to Postgres, with one answer (docs/inside/adr/0033-transactions-in-one-message.md). The package `pg`
// sends one statement at a time. This file uses parts of `pg` that are not its public interface: the methods that it calls on a query,
// its connection, and its `Result`. `pg-pipeline.int-spec.ts` checks each of them, so that an upgrade of `pg` that changes one fails there.

declare module 'pg' {
  /** Missing in the types of this package. */
  // oxlint-disable-next-line no-unused-vars -- it is imported above
  const utils: {
    /** A value as it is sent: text, bytes, or null. */
    prepareValue(value: unknown): string | Buffer | null;
  };
}

/** For the protocol that takes one statement: behind a `;` nothing can leave the scope. */
export const alone = (statement: Statement, values: Values) => ({
  ...statement,
  values: [...values],
  queryMode: 'extended',
});

/** An array as the text that Postgres reads as one. */
export const arrayText = (items: readonly unknown[]): string => String(utils.prepareValue(items));

/** The connection below a client, as far as its package shows it to queries. */
interface Wire {
  stream: Client['connection']['stream'];
  /** Texts of the statements that this connection has prepared, by name. */
  parsedStatements: Readonly<Record<string, string>>;
  parse(what: { name: string; text: string }): void;
  bind(what: { statement: string; values: Values }): void;
  describe(what: { type: 'P'; name: string }): void;
  execute(what: { portal: string }): void;
  sync(): void;
}

const wireOf = (client: PoolClient): Wire => (client as unknown as { connection: Wire }).connection;

/** A statement whose values are as they are sent. */
const ready = ([statement, values]: [Statement, Values]): [Statement, Values] => [
  statement,
  values.map((value) => utils.prepareValue(value)),
];

const isPrepared = (client: PoolClient, calls: readonly [Statement, Values][]): boolean => {
  const { parsedStatements } = wireOf(client);
  return calls.every(([{ name, text }]) => name !== undefined && parsedStatements[name] === text);
};

/**
 * One transaction of these statements.
 * @param isPooled the connection may be another one for the next transaction: nothing may stay prepared on it
 * @returns the answer of each
 */
export async function sendTransaction(
  client: PoolClient,
  calls: readonly [Statement, Values][],
  isPooled: boolean,
): Promise<readonly Answer[]> {
  const sent = calls.map(ready);
  if (!isPooled) return (isPrepared(client, sent) ? inOneMessage : oneByOne)(client, sent);
  // A statement without a name may need a transaction block.
  const canShare = sent.every(([{ name }]) => name !== undefined);
  const unnamed = sent.map(([{ text }, values]): [Statement, Values] => [{ text }, values]);
  return (canShare ? inOneMessage : oneByOne)(client, unnamed);
}

/** The answer to a statement. */
export interface Answer {
  rows: QueryResultRow[];
}

/** The columns of a prepared statement, and how the values of a row are read. */
interface RowShape {
  addFields(fields: readonly FieldDef[]): void;
  parseRow(values: readonly (string | null)[]): QueryResultRow;
}

/**
 * Columns of the statements that connections have prepared. They stay as they are: Postgres refuses a prepared statement whose
 * columns have changed.
 */
const shapes = new WeakMap<Wire['parsedStatements'], Map<string, RowShape>>();

function shapesOf({ parsedStatements }: Wire): Map<string, RowShape> {
  const known = shapes.get(parsedStatements) ?? new Map<string, RowShape>();
  shapes.set(parsedStatements, known);
  return known;
}

/**
 * Statements up to one Sync: prepared ones, and those without a name. To Postgres this is a transaction, without BEGIN and COMMIT. It answers once, when it
 * has committed. For each statement of its own that ends with a Sync it would wake this process once more. Postgres describes
 * the columns of a prepared statement once.
 */
class Pipeline extends Query {
  private readonly answers: Answer[];
  /** The columns of each statement, if they are known. */
  private readonly shapes: (RowShape | undefined)[] = [];
  private known: Map<string, RowShape> | undefined;
  /** The statement whose answer comes. After the last one, that of the commit. */
  current = 0;
  private unreadable: unknown;

  /** Set by `Query`. The client replaces it by a callback that also ends its timeout. */
  declare callback: (error: unknown, answers?: readonly Answer[]) => void;

  constructor(
    private readonly calls: readonly [Statement, Values][],
    callback: (error: unknown, answers: readonly Answer[]) => void,
  ) {
    super('', callback);
    this.answers = calls.map(() => ({ rows: [] }));
  }

  /** Asked by `submit`. */
  requiresPreparation(): boolean {
    return true;
  }

  /** Called by `submit`. */
  prepare(wire: Wire): void {
    this.known = shapesOf(wire);
    for (const [{ name = '', text }, values] of this.calls) {
      const shape = this.known.get(name);
      this.shapes.push(shape);
      if (name === '') wire.parse({ name, text });
      wire.bind({ statement: name, values });
      if (!shape) wire.describe({ type: 'P', name: '' });
      wire.execute({ portal: '' });
    }
    wire.sync();
  }

  handleRowDescription({ fields }: { fields: readonly FieldDef[] }): void {
    const shape = new Result('object', types) as unknown as RowShape;
    shape.addFields(fields);
    this.shapes[this.current] = shape;
    const name = this.calls[this.current]?.[0].name;
    if (name !== undefined) this.known?.set(name, shape);
  }

  handleDataRow({ fields }: { fields: readonly (string | null)[] }): void {
    const shape = this.shapes[this.current];
    try {
      if (!shape) throw new Error('A row without columns');
      this.answers[this.current]?.rows.push(shape.parseRow(fields));
    } catch (error) {
      this.unreadable ??= error;
    }
  }

  handleCommandComplete(): void {
    this.current += 1;
  }

  handleEmptyQuery(): void {
    this.current += 1;
  }

  handleReadyForQuery(): void {
    this.callback(this.unreadable, this.answers);
  }
}

/** Which statement of a transaction has failed, by its error. */
export const failedCallOf = (error: object): number | undefined => failedCalls.get(error);

const failedCalls = new WeakMap<object, number>();

function noteFailedCall(error: unknown, index: number): void {
  // Only an error of Postgres is about a statement.
  if (error instanceof DatabaseError) failedCalls.set(error, index);
}

/** @returns the result of each */
async function inOneMessage(
  client: PoolClient,
  calls: readonly [Statement, Values][],
): Promise<readonly Answer[]> {
  let pipeline: Pipeline | undefined;
  try {
    return await new Promise((resolve, reject) => {
      const done = (error: unknown, answers: readonly Answer[]): void =>
        // oxlint-disable-next-line typescript/prefer-promise-reject-errors -- it is what the package has thrown
        error ? reject(error) : resolve(answers);
      pipeline = new Pipeline(calls, done);
      client.query(pipeline);
    });
  } catch (error) {
    if (pipeline && pipeline.current < calls.length) noteFailedCall(error, pipeline.current);
    // The next user of this connection must find it ready, or known as lost.
    await client.query('SELECT').catch(() => undefined);
    throw error;
  }
}

/** For statements that this connection has not prepared yet: the package keeps account of them. @returns the result of each */
async function oneByOne(client: PoolClient, calls: readonly [Statement, Values][]): Promise<QueryResult[]> {
  const { stream } = wireOf(client);
  // In one packet: a packet for each would take half of this process's time.
  stream.cork();
  const sent = [
    client.query('BEGIN'),
    ...calls.map(([statement, values]) => client.query(alone(statement, values))),
    client.query('COMMIT'),
  ];
  stream.uncork();
  const settled = await Promise.allSettled(sent);
  const failed = settled.findIndex(({ status }) => status === 'rejected');
  if (0 < failed && failed <= calls.length) {
    noteFailedCall((settled[failed] as PromiseRejectedResult).reason, failed - 1);
  }
  const [, ...results] = settled.map(resultOf);
  assertCommitted(results.pop());
  return results;
}

function resultOf(settled: PromiseSettledResult<QueryResult>): QueryResult {
  if (settled.status === 'rejected') throw settled.reason as Error;
  return settled.value;
}

/** @throws Error if the transaction was rolled back */
export function assertCommitted(result: QueryResult | undefined): void {
  if (result?.command !== 'COMMIT') throw new Error('The transaction was rolled back');
}
