import { loadModule, parseSync, type RawStmt } from 'libpg-query';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { escapeIdentifier } from 'pg';
import { migrationNames } from '../connection/migrations-folder.js';

/** One statement of a migration, without the comments around it. */
export interface MigrationStatement {
  text: string;
  /** Command and object: `ALTER TABLE tasks`. */
  label: string;
}

/** Statements that become valid together or not at all. */
export interface TransactionStep {
  kind: 'transaction';
  label: string;
  statements: MigrationStatement[];
}

/** An index that is built or dropped while the table is in use. */
export interface IndexStep {
  kind: 'build index' | 'drop index';
  label: string;
  index: string;
  /** The statement with CONCURRENTLY. */
  text: string;
}

/** A statement that goes through a table in slices, each of them a transaction. */
export interface BackfillStep {
  kind: 'backfill';
  label: string;
  table: string;
  /** Columns of a unique index, in its order. */
  key: string[];
  /** Rows of the table in one slice. */
  rows: number;
  /** The statement for the rows of one slice, whose condition is given. */
  slice(conditionOf: (alias: string) => string): string;
}

export type MigrationStep = TransactionStep | IndexStep | BackfillStep;

/** A folder of `prisma/migrations`: what Prisma executes as one script, and the steps in which we do. */
export interface Migration {
  name: string;
  sql: string;
  steps: MigrationStep[];
  /** It removes what releases before this one use: `-- baton: contract after=0.2.0`. */
  contractAfter?: string;
}

/** The migrations of a folder in the order in which they are applied. Throws if one cannot be read as SQL. */
export async function readMigrations(folder: string): Promise<Migration[]> {
  await loadModule();
  return migrationNames(folder).map((name) =>
    parseMigration(name, readFileSync(join(folder, name, 'migration.sql'), 'utf8')),
  );
}

const ANNOTATION = /^[ \t]*--[ \t]*baton:[ \t]*(.*?)[ \t]*$/gm;
const BACKFILL = /^backfill table=(\w+) key=(\w+(?:,\w+)*) rows=([1-9]\d{0,5})$/;
const CONTRACT = /^contract after=(\d+\.\d+\.\d+)$/;
/** Where the condition of a slice goes. As it stands, it is true for every row. */
const SLICE = /\/\*\s*slice(?:\s+of\s+(\w+))?\s*\*\/\s*true\b/gi;

/**
 * The steps of one migration. Comments that begin with `-- baton:` stand before a statement and say how it is
 * executed on a live system; statements without one form a transaction with their neighbours. See docs/inside/migrations.md.
 * `loadModule` of libpg-query must have been awaited.
 */
export function parseMigration(name: string, sql: string): Migration {
  const bytes = Buffer.from(sql);
  const steps: MigrationStep[] = [];
  let contractAfter: string | undefined;
  let end = 0;
  const fail = (why: string): never => {
    throw new Error(`Migration ${name}: ${why}`);
  };
  for (const statement of parse(name, sql)) {
    const start = statement.stmt_location ?? 0;
    const comments = bytes.subarray(end, start).toString();
    end = statement.stmt_len ? start + statement.stmt_len : bytes.length;
    const text = bytes.subarray(start, end).toString().replace(/;\s*$/, '');
    let step: MigrationStep | undefined;
    for (const [, annotation = ''] of comments.matchAll(ANNOTATION)) {
      const after = CONTRACT.exec(annotation)?.[1];
      if (after) contractAfter = after;
      else step = onlineStep(annotation, text, statement, fail);
    }
    const last = steps.at(-1);
    const own = { text, label: labelOf(text, statement) };
    if (step) steps.push(step);
    else if (last?.kind === 'transaction') last.statements.push(own);
    else steps.push({ kind: 'transaction', label: '', statements: [own] });
  }
  if (ANNOTATION.test(bytes.subarray(end).toString()))
    fail('a "-- baton:" comment has no statement after it');
  for (const step of steps) if (step.kind === 'transaction') step.label = summary(step.statements);
  return { name, sql, steps, ...(contractAfter && { contractAfter }) };
}

function parse(name: string, sql: string): RawStmt[] {
  try {
    return sql.trim() === '' ? [] : (parseSync(sql).stmts ?? []);
  } catch (error) {
    throw new Error(`Migration ${name} is not valid SQL: ${String(error)}`, { cause: error });
  }
}

function onlineStep(
  annotation: string,
  text: string,
  statement: RawStmt,
  fail: (why: string) => never,
): MigrationStep {
  const label = labelOf(text, statement);
  if (annotation === 'separately') return { kind: 'transaction', label: '', statements: [{ text, label }] };
  if (annotation === 'concurrently')
    return indexStep(text, statement) ?? fail(`"${label}" is not an index with a name`);
  const [, table = '', key = '', rows = ''] =
    BACKFILL.exec(annotation) ?? fail(`"-- baton: ${annotation}" is not known`);
  if ([...text.matchAll(SLICE)].length !== 1) fail(`"${label}" needs one "/* slice */ true" in its WHERE`);
  return {
    kind: 'backfill',
    label: `backfill ${table}`,
    table,
    key: key.split(','),
    rows: Number(rows),
    slice: (conditionOf) =>
      text.replace(SLICE, (_, alias: string | undefined) => conditionOf(alias ?? table)),
  };
}

function indexStep(text: string, { stmt }: RawStmt): IndexStep | undefined {
  if (stmt && 'IndexStmt' in stmt && stmt.IndexStmt.idxname) {
    const { idxname: index, relation, concurrent } = stmt.IndexStmt;
    return {
      kind: 'build index',
      index,
      label: `build index ${index} on ${relation?.relname}`,
      text: concurrent ? text : text.replace(/^(CREATE\s+(?:UNIQUE\s+)?INDEX)\b/i, '$1 CONCURRENTLY'),
    };
  }
  const dropped =
    stmt && 'DropStmt' in stmt && stmt.DropStmt.removeType === 'OBJECT_INDEX' ? stmt.DropStmt : undefined;
  const [object, ...others] = dropped?.objects ?? [];
  const names = object && 'List' in object ? (object.List.items ?? []) : [];
  const last = names.at(-1);
  if (others.length > 0 || !last || !('String' in last) || !last.String.sval) return undefined;
  const index = last.String.sval;
  return {
    kind: 'drop index',
    index,
    label: `drop index ${index}`,
    text: `DROP INDEX CONCURRENTLY IF EXISTS ${escapeIdentifier(index)}`,
  };
}

/** `CREATE UNIQUE INDEX agents_key`, `ALTER TABLE tasks`, `UPDATE tasks`. */
function labelOf(text: string, { stmt }: RawStmt): string {
  const [words] = /^(?:CREATE|ALTER|DROP)\s+(?:(?:UNIQUE|UNLOGGED)\s+)?\w+|^\w+/i.exec(text) ?? [''];
  const [node] = Object.values(stmt ?? {}) as { idxname?: string; relation?: Named; table?: Named }[];
  const what = node?.idxname ?? node?.relation?.relname ?? node?.table?.relname;
  return [words.replace(/\s+/g, ' ').toUpperCase(), what].filter(Boolean).join(' ');
}

interface Named {
  relname?: string;
}

/** `CREATE TABLE schedules, 4 × ALTER TABLE schedules`. */
function summary(statements: MigrationStatement[]): string {
  const counts = new Map<string, number>();
  for (const { label } of statements) counts.set(label, (counts.get(label) ?? 0) + 1);
  const parts = [...counts].map(([label, count]) => (count === 1 ? label : `${count} × ${label}`));
  return parts.length <= 4
    ? parts.join(', ')
    : `${parts.slice(0, 3).join(', ')} and ${parts.length - 3} more`;
}
