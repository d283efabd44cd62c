import { loadModule, parseSync } from 'libpg-query';
import { execFileSync } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { RELEASED } from '../../../../test/support/released-build.js';
import { migrationsFolder } from '../connection/migrations-folder.js';
import { type Migration, type MigrationStep, parseMigration, readMigrations } from './migration-file.js';

/** Matters of taste, and those that the runner takes care of. */
const NOT_OURS = ['prefer-robust-stmts', 'prefer-bigint-over-int', 'prefer-text-field', 'prefer-identity'];
/** What only a contract migration may do: it removes what an earlier release used. */
const REMOVALS = [
  'ban-drop-column',
  'ban-drop-table',
  'ban-drop-not-null',
  'renaming-column',
  'renaming-table',
];
/** Not its command, which starts a Node.js to start the program. */
// oxlint-disable-next-line typescript/no-require-imports -- it has no types
const SQUAWK = (require('squawk-cli/js/index.js') as { getBinaryPath(): string }).getBinaryPath();
const folder = mkdtempSync(join(tmpdir(), 'baton-rules-'));

beforeAll(() => loadModule());
afterAll(() => rmSync(folder, { recursive: true }));

/** The script that the runner makes of a migration, without its backfills. */
function executed({ steps }: Migration): string {
  const timeouts = `SET lock_timeout = '2s';\nSET statement_timeout = '5s';\n`;
  const scripts = steps.map((step) => {
    if (step.kind === 'backfill') return '';
    if (step.kind !== 'transaction') return `${step.text};\n`;
    return `BEGIN;\n${step.statements.map(({ text }) => `${text};\n`).join('')}COMMIT;\n`;
  });
  return timeouts + scripts.join('');
}

/** What squawk, a linter for migrations, has against it. */
function squawk(migration: Migration): string[] {
  const file = join(folder, 'migration.sql');
  writeFileSync(file, executed(migration));
  const excluded = [...NOT_OURS, ...(migration.contractAfter ? REMOVALS : [])].flatMap((rule) => [
    '--exclude',
    rule,
  ]);
  const args = ['--reporter', 'json', ...excluded, file];
  let found: string;
  try {
    found = execFileSync(SQUAWK, args, { encoding: 'utf8', stdio: ['ignore', 'pipe', 'ignore'] });
  } catch (error) {
    found = (error as { stdout: string }).stdout;
  }
  return (JSON.parse(found) as { rule_name: string }[]).map(({ rule_name: rule }) => rule);
}

type Tree = Record<string, Record<string, unknown> | undefined>;

/** The constant 0. protobuf leaves its value out. */
function isZero(node: unknown): boolean {
  const ival = (node as { A_Const?: { ival?: { ival?: number } } }).A_Const?.ival;
  return ival !== undefined && ival.ival === undefined;
}

/** The columns that a statement adds to its table, and whose rows are 0 unless a statement sets them. */
function addedCounters({ cmds }: { cmds: Tree[] }): string[] {
  return cmds.flatMap(({ AlterTableCmd: { subtype, def } = {} }) => {
    const column = (def as Tree | undefined)?.ColumnDef as
      | { colname: string; constraints?: { Constraint: { contype: string; raw_expr?: unknown } }[] }
      | undefined;
    if (subtype !== 'AT_AddColumn' || !column) return [];
    const defaults = column.constraints?.filter(({ Constraint }) => Constraint.contype === 'CONSTR_DEFAULT');
    return defaults?.some(({ Constraint }) => isZero(Constraint.raw_expr)) ? [column.colname] : [];
  });
}

/** Whether a condition is `NEW.<counter> > 0`, or a conjunction with such a part. */
function asksForCounter(condition: unknown, counters: ReadonlySet<unknown>): boolean {
  const { BoolExpr: all, A_Expr: compared } = condition as Tree;
  if (all)
    return (
      all.boolop === 'AND_EXPR' && (all.args as unknown[]).some((part) => asksForCounter(part, counters))
    );
  const [operator] = (compared?.name ?? []) as { String: { sval: string } }[];
  const fields = (compared?.lexpr as Tree | undefined)?.ColumnRef?.fields ?? [];
  const [row, column] = (fields as { String: { sval: string } }[]).map((field) => field.String.sval);
  return operator?.String.sval === '>' && row === 'new' && counters.has(column) && isZero(compared?.rexpr);
}

/**
 * A trigger on a table that the last release uses: it may only fire after a change of a row, and only if a counter that
 * the migration adds is above 0. The last release leaves it at 0.
 */
const leavesLastReleaseAlone = (node: Record<string, unknown>, counters: ReadonlySet<unknown>): boolean =>
  node.row === true && node.timing === undefined && asksForCounter(node.whenClause ?? {}, counters);

/** The kinds of statements whose locks are short, and what they may not do. */
const KNOWN: Record<
  string,
  (node: Record<string, unknown>, isNew: boolean, counters: ReadonlySet<unknown>) => string | undefined
> = {
  CreateStmt: () => undefined,
  IndexStmt: () => undefined,
  CommentStmt: () => undefined,
  AlterPolicyStmt: () => undefined,
  // No process calls a new function yet.
  CreateFunctionStmt: ({ replace }) => (replace ? 'a function that the last release may call' : undefined),
  CreateTrigStmt: (node, isNew, counters) =>
    isNew || leavesLastReleaseAlone(node, counters)
      ? undefined
      : 'a trigger on a table that the last release uses',
  CreatePolicyStmt: (_, isNew) => (isNew ? undefined : 'a policy on a table that the last release uses'),
  AlterTableStmt: ({ cmds }, isNew) =>
    isNew ? undefined : (cmds as Tree[]).map(({ AlterTableCmd }) => alteration(AlterTableCmd)).find(Boolean),
  SelectStmt: (node) => (JSON.stringify(node).includes('"set_config"') ? undefined : 'a SELECT'),
  InsertStmt: (node, isNew) =>
    isNew && JSON.stringify(node).includes('valuesLists') ? undefined : 'an INSERT that is no backfill',
  UpdateStmt: (_, isNew) => (isNew ? undefined : 'an UPDATE that is no backfill'),
  DeleteStmt: (_, isNew) => (isNew ? undefined : 'a DELETE that is no backfill'),
};

/** Squawk checks whether a new column or constraint is slow. */
const ALTERATIONS = new Set([
  'AT_AddColumn',
  'AT_AddConstraint',
  'AT_ValidateConstraint',
  'AT_SetRelOptions',
  'AT_DropNotNull',
]);

function alteration(command: Record<string, unknown> | undefined): string | undefined {
  const { subtype, def } = command as { subtype: string; def?: unknown };
  const isAllowed = ALTERATIONS.has(subtype) || (subtype === 'AT_ColumnDefault' && def !== undefined);
  return isAllowed ? undefined : `${subtype} on a table that the last release uses`;
}

/** ALTER POLICY locks its table exclusively. Beside other statements it would keep the lock until they are done. */
const holdsLocksOfPolicies = (step: MigrationStep): boolean =>
  step.kind === 'transaction' &&
  step.statements.length > 1 &&
  step.statements.some(({ text }) => /^\s*ALTER POLICY\b/i.test(text));

/** What else may hold up or break the processes of the last release. */
function problems(migration: Migration): string[] {
  const created = new Set<unknown>();
  /** Of any table: names of columns are unlikely to repeat in one migration. */
  const counters = new Set<unknown>();
  const found = squawk(migration);
  const statements = migration.steps.flatMap((step) => (step.kind === 'transaction' ? step.statements : []));
  for (const { text } of migration.contractAfter ? [] : statements) {
    const [entry] = Object.entries((parseSync(text).stmts?.[0]?.stmt ?? {}) as Tree);
    const [kind, node] = entry ?? ['', undefined];
    const table = ((node?.relation ?? node?.table) as { relname?: string } | undefined)?.relname;
    if (kind === 'CreateStmt') created.add(table);
    if (kind === 'AlterTableStmt')
      addedCounters(node as { cmds: Tree[] }).forEach((name) => counters.add(name));
    const rule = KNOWN[kind];
    const problem = rule ? rule(node ?? {}, created.has(table), counters) : `${kind}, which no rule knows`;
    if (problem) found.push(problem);
  }
  if (migration.steps.some(holdsLocksOfPolicies))
    found.push('a policy that is altered beside other statements');
  const hasBackfill = migration.steps.some(({ kind }) => kind === 'backfill');
  if (hasBackfill && !migration.sql.includes(`set_config('baton.tenant', 'system', true)`)) {
    found.push('a backfill whose tenant is not set for prisma migrate deploy');
  }
  if (
    migration.contractAfter &&
    migration.contractAfter.localeCompare(RELEASED.version, 'en', { numeric: true }) > 0
  ) {
    found.push(`what release ${RELEASED.version} may use`);
  }
  return found;
}

const problemsOf = (sql: string) => problems(parseMigration('m', sql));

it('every migration since the last release leaves that release working, and waits for nothing long', async () => {
  const migrations = (await readMigrations(migrationsFolder())).filter(
    ({ name }) => name > RELEASED.lastMigration,
  );
  for (const migration of migrations)
    expect([migration.name, ...problems(migration)]).toEqual([migration.name]);
});

it.each([
  'ALTER TABLE "tasks" ADD COLUMN "a" TEXT, ADD COLUMN "b" BIGINT NOT NULL DEFAULT 0;',
  `CREATE TABLE "n" ("id" UUID NOT NULL, CONSTRAINT "n_pkey" PRIMARY KEY ("id"));
   CREATE INDEX "n_idx" ON "n"("id");
   ALTER TABLE "n" ENABLE ROW LEVEL SECURITY;
   CREATE POLICY "p" ON "n" USING (true);`,
  '-- baton: concurrently\nCREATE INDEX "i" ON "tasks"("id");\n-- baton: concurrently\nDROP INDEX "j";',
  `SELECT set_config('baton.tenant', 'system', true);
   -- baton: backfill table=tasks key=tenant_id,id rows=100
   UPDATE "tasks" SET "a" = 1 WHERE /* slice */ true;`,
  `ALTER TABLE "tasks" ADD CONSTRAINT "c" CHECK ("a" > 0) NOT VALID;
   -- baton: separately
   ALTER TABLE "tasks" VALIDATE CONSTRAINT "c";`,
  '-- baton: contract after=0.1.0\nALTER TABLE "tasks" DROP COLUMN "a";',
  `-- baton: separately
   ALTER POLICY "p" ON "tasks" USING (true);
   -- baton: separately
   ALTER POLICY "p" ON "runs" USING (true);`,
  `ALTER TABLE "tasks" ADD COLUMN "n" INTEGER NOT NULL DEFAULT 0;
   CREATE TRIGGER "t" AFTER UPDATE ON "tasks" FOR EACH ROW WHEN (NEW."n" > 0 AND NEW."id" IS NOT NULL) EXECUTE FUNCTION "f"();`,
])('takes %s', (sql) => {
  expect(problemsOf(sql)).toEqual([]);
});

it.each([
  ['CREATE INDEX "i" ON "tasks"("id");', 'require-concurrent-index-creation'],
  ['DROP INDEX "i";', 'require-concurrent-index-deletion'],
  ['ALTER TABLE "tasks" ADD COLUMN "a" UUID DEFAULT gen_random_uuid();', 'adding-field-with-default'],
  ['ALTER TABLE "tasks" ADD COLUMN "a" INTEGER NOT NULL;', 'adding-required-field'],
  ['ALTER TABLE "tasks" ALTER COLUMN "a" TYPE BIGINT;', 'changing-column-type'],
  ['ALTER TABLE "tasks" ALTER COLUMN "a" SET NOT NULL;', 'adding-not-nullable-field'],
  ['ALTER TABLE "tasks" ADD CONSTRAINT "c" CHECK ("a" > 0);', 'constraint-missing-not-valid'],
  ['ALTER TABLE "tasks" ADD CONSTRAINT "c" UNIQUE ("a");', 'disallowed-unique-constraint'],
  ['ALTER TABLE "tasks" DROP COLUMN "a";', 'ban-drop-column'],
  ['ALTER TABLE "tasks" RENAME COLUMN "a" TO "b";', 'renaming-column'],
  ['DROP TABLE "runs";', 'ban-drop-table'],
  ['-- baton: contract after=0.3.0\nDROP TABLE "runs";', 'what release 0.2.0 may use'],
  [
    'ALTER TABLE "tasks" ALTER COLUMN "a" DROP DEFAULT;',
    'AT_ColumnDefault on a table that the last release uses',
  ],
  [
    'ALTER TABLE "tasks" DISABLE ROW LEVEL SECURITY;',
    'AT_DisableRowSecurity on a table that the last release uses',
  ],
  ['UPDATE "tasks" SET "a" = 1;', 'an UPDATE that is no backfill'],
  ['INSERT INTO "n" SELECT * FROM "tasks";', 'an INSERT that is no backfill'],
  [
    'ALTER POLICY "p" ON "tasks" USING (true);ALTER POLICY "p" ON "runs" USING (true);',
    'a policy that is altered beside other statements',
  ],
  ...[
    'CREATE TRIGGER "t" AFTER UPDATE ON "tasks" FOR EACH ROW EXECUTE FUNCTION "f"();',
    'CREATE TRIGGER "t" AFTER UPDATE ON "tasks" FOR EACH ROW WHEN (NEW."attempt" > 0) EXECUTE FUNCTION "f"();',
    ...[
      'BEFORE UPDATE ON "tasks" FOR EACH ROW WHEN (NEW."n" > 0)',
      'AFTER UPDATE ON "tasks" FOR EACH ROW WHEN (NEW."n" > -1)',
    ].map(
      (when) =>
        `ALTER TABLE "tasks" ADD COLUMN "n" INTEGER NOT NULL DEFAULT 0;CREATE TRIGGER "t" ${when} EXECUTE FUNCTION "f"();`,
    ),
    'ALTER TABLE "tasks" ADD COLUMN "n" INTEGER NOT NULL DEFAULT 1;CREATE TRIGGER "t" AFTER UPDATE ON "tasks" FOR EACH ROW WHEN (NEW."n" > 0) EXECUTE FUNCTION "f"();',
  ].map((sql): string[] => [sql, 'a trigger on a table that the last release uses']),
  ['TRUNCATE "tasks";', 'TruncateStmt, which no rule knows'],
  [
    '-- baton: backfill table=tasks key=id rows=9\nUPDATE "tasks" SET "a" = 1 WHERE /* slice */ true;',
    'a backfill whose tenant is not set for prisma migrate deploy',
  ],
])('refuses %s', (sql, problem) => {
  expect(problemsOf(sql)).toContain(problem);
});
