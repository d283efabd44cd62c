/** A statement. Each connection prepares a statement with a name once. One without a name is planned every time. */
export interface Statement {
  name?: string;
  text: string;
}

/** The values of the parameters of a statement, in their order. */
export type Values = readonly unknown[];

// Named inputs of a statement. A statement with many inputs does not count `$1`, `$2`, … by hand: two neighbours of one SQL type
// could be swapped, and the statement would still run. It declares each input once: its name, its SQL type, and its value.
//
//   const claim = {
//     tenant_id: ['uuid', ({ tenantId }) => tenantId],
//     lease_ms: ['int', ({ leaseMs }) => leaseMs],
//   } satisfies Inputs<NewClaim>;
//   const now = { at: ['timestamptz', (at) => at] } satisfies Inputs<Date>;
//
//   const CLAIM = statement('runs-claim', { claims: list(claim), now: one(now) }, ({ claims, now }) => `
//     UPDATE runs SET claimed_at = ${now.at} FROM ${claims.rows('k')} WHERE id = k.run_id …`);
//
//   await database.tenantQuery(tenantId, CLAIM, CLAIM.values({ claims: [first, second], now: new Date() }));
//
// The text is made once, when the module loads: `${now.at}` is `$3::timestamptz`, and `${claims.rows('k')}` is
// `unnest($1::uuid[], $2::int[]) AS k(tenant_id, lease_ms)`. So a prepared name always has the same text.

/** An input: its SQL type, and its value. Undefined is sent as NULL. */
type Input<From> = readonly [type: string, value: (from: From) => unknown];

/** Inputs by their names in SQL. Declare them with `satisfies Inputs<From>`: the names stay known to the compiler. */
export type Inputs<From> = Readonly<Record<string, Input<From>>>;

/** What SQL has of inputs that a statement has once: each parameter with its type, for instance `$1::uuid`. */
type OneSql<Name extends string> = Readonly<Record<Name, string>>;

/** What SQL has of inputs that a statement has once for each item of a list. */
interface ListSql<Name extends string> {
  /** Each parameter with its type, for instance `$1::uuid[]`. A column of JSON is one JSON array: `$1::json`. */
  arrays: Readonly<Record<Name, string>>;
  /**
   * An item of FROM with a row for each item of the list, in their order.
   * @param alias its name
   * @param ordinality name of a further column: the number of the row, from 1. Unset: there is none
   */
  rows(alias: string, ordinality?: string): string;
}

/** Some inputs of a statement. */
interface Group<From, Sql> {
  /** @param first number of the first parameter */
  sql(first: number): Sql;
  values(from: From): unknown[];
  /** Number of parameters. */
  size: number;
}

/** Inputs that a statement has once. */
export function one<From, Name extends string>(
  inputs: Readonly<Record<Name, Input<From>>>,
): Group<From, OneSql<Name>> {
  const columns = Object.entries<Input<From>>(inputs);
  return {
    size: columns.length,
    sql: (first) => parameters(columns, first, (type) => type) as OneSql<Name>,
    values: (from) => columns.map(([, [, value]]) => value(from)),
  };
}

/**
 * Inputs that a statement has once for each item of a list. Each is an array, so the text is the same for any number of items. The
 * values of a `json` input are JSON texts, and are sent as one JSON array: Postgres takes its elements as they are, while an array
 * of JSON would quote each text.
 */
export function list<From, Name extends string>(
  inputs: Readonly<Record<Name, Input<From>>>,
): Group<readonly From[], ListSql<Name>> {
  const columns = Object.entries<Input<From>>(inputs);
  return {
    size: columns.length,
    sql: (first) => {
      const arrays = parameters(columns, first, (type) => (type === 'json' ? type : `${type}[]`));
      return {
        arrays: arrays as Record<Name, string>,
        rows: (alias, ordinality) => {
          const names = [...Object.keys(inputs), ...(ordinality === undefined ? [] : [ordinality])];
          const numbered = ordinality === undefined ? '' : ' WITH ORDINALITY';
          return `${rowsFrom(Object.values(arrays))}${numbered} AS ${alias}(${names.join(', ')})`;
        },
      };
    },
    values: (items) =>
      columns.map(([, [type, value]]) => {
        const values = items.map((item) => value(item));
        return type === 'json' ? `[${values.join()}]` : values;
      }),
  };
}

function parameters<From>(
  columns: [string, Input<From>][],
  first: number,
  typeOf: (type: string) => string,
): Record<string, string> {
  return Object.fromEntries(columns.map(([name, [type]], i) => [name, `$${first + i}::${typeOf(type)}`]));
}

/** A function of SQL whose rows have these columns: one `unnest` of neighbouring arrays, and `json_array_elements`. */
function rowsFrom(arrays: readonly string[]): string {
  const functions: string[][] = [];
  for (const array of arrays) {
    const isJson = array.endsWith('::json');
    const last = functions.at(-1);
    if (isJson || !last || last[0]?.endsWith('::json')) functions.push([array]);
    else last.push(array);
  }
  const calls = functions.map((of) =>
    of[0]?.endsWith('::json') ? `json_array_elements(${of[0]})` : `unnest(${of.join(', ')})`,
  );
  return calls.length === 1 ? (calls[0] ?? '') : `ROWS FROM (${calls.join(', ')})`;
}

type Groups = Readonly<Record<string, Group<never, unknown>>>;
type SqlOf<G extends Groups> = { readonly [Name in keyof G]: ReturnType<G[Name]['sql']> };
type ValuesOf<G extends Groups> = { readonly [Name in keyof G]: Parameters<G[Name]['values']>[0] };

/** A statement whose inputs have names. */
export interface NamedStatement<From> extends Statement {
  /** The values of its parameters, in their order. */
  values(from: From): Values;
}

/**
 * A statement whose inputs have names.
 * @param name each connection prepares the statement once under this name; undefined = it is planned every time
 * @param groups its inputs, by what its text calls them
 * @param text prints its SQL, once
 */
export function statement<G extends Groups>(
  name: string | undefined,
  groups: G,
  text: (sql: SqlOf<G>) => string,
): NamedStatement<ValuesOf<G>> {
  let first = 1;
  const sql: Record<string, unknown> = {};
  for (const [key, group] of Object.entries(groups)) {
    sql[key] = group.sql(first);
    first += group.size;
  }
  const printed = text(sql as SqlOf<G>);
  for (let n = 1; n < first; n++) {
    // Postgres would only say that it cannot determine the type of a parameter.
    if (!printed.includes(`$${n}::`))
      throw new TypeError(`${name ?? printed}: the text does not use input $${n}`);
  }
  return {
    ...(name !== undefined && { name }),
    text: printed,
    values: (from) => Object.entries(groups).flatMap(([key, group]) => group.values(from[key] as never)),
  };
}
