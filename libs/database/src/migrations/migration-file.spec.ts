import { loadModule } from 'libpg-query';
import { migrationsFolder } from '../connection/migrations-folder.js';
import { parseMigration, readMigrations } from './migration-file.js';

beforeAll(() => loadModule());

const stepsOf = (sql: string) => parseMigration('m', sql).steps;

it('cuts a migration at its statements, not at semicolons in texts, names, functions and comments', () => {
  const [step, ...others] = stepsOf(`-- Müller; says: hello
    CREATE TABLE "a;b" ("ü" TEXT DEFAULT 'x;y'); /* one; /* two; */ */
    CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $x$ BEGIN PERFORM 1; END; $x$;

    ALTER TABLE "a;b" ADD COLUMN "c" INTEGER`);
  expect(others).toEqual([]);
  expect(step).toMatchObject({
    kind: 'transaction',
    label: 'CREATE TABLE a;b, CREATE FUNCTION, ALTER TABLE a;b',
  });
  expect(step?.kind === 'transaction' && step.statements.map(({ text }) => text)).toEqual([
    `CREATE TABLE "a;b" ("ü" TEXT DEFAULT 'x;y')`,
    'CREATE FUNCTION f() RETURNS void LANGUAGE plpgsql AS $x$ BEGIN PERFORM 1; END; $x$',
    'ALTER TABLE "a;b" ADD COLUMN "c" INTEGER',
  ]);
});

it('makes steps of the statements that are annotated', () => {
  const steps = stepsOf(`
    ALTER TABLE "tasks" ADD COLUMN "note" TEXT;
    -- What it is for.
    -- baton: concurrently
    CREATE UNIQUE INDEX "tasks_note_key" ON "tasks"("note") WHERE "note" IS NOT NULL;
    -- baton: concurrently
    DROP INDEX "tasks_old_idx";
    -- baton: backfill table=tasks key=tenant_id,id rows=500
    UPDATE "tasks" t SET "note" = '' WHERE /* slice of t */ true AND t."note" IS NULL;
    ALTER TABLE "tasks" ADD CONSTRAINT "c" CHECK ("note" IS NOT NULL) NOT VALID;
    -- baton: separately
    ALTER TABLE "tasks" VALIDATE CONSTRAINT "c";
  `);
  expect(steps).toMatchObject([
    { kind: 'transaction', label: 'ALTER TABLE tasks' },
    {
      kind: 'build index',
      text: 'CREATE UNIQUE INDEX CONCURRENTLY "tasks_note_key" ON "tasks"("note") WHERE "note" IS NOT NULL',
    },
    { kind: 'drop index', text: 'DROP INDEX CONCURRENTLY IF EXISTS "tasks_old_idx"' },
    { kind: 'backfill', table: 'tasks', key: ['tenant_id', 'id'], rows: 500 },
    { kind: 'transaction', statements: [{ label: 'ALTER TABLE tasks' }] },
    { kind: 'transaction', statements: [{ text: 'ALTER TABLE "tasks" VALIDATE CONSTRAINT "c"' }] },
  ]);
  const backfill = steps[3];
  expect(backfill?.kind === 'backfill' && backfill.slice((alias) => `${alias}.id > $1`)).toBe(
    `UPDATE "tasks" t SET "note" = '' WHERE t.id > $1 AND t."note" IS NULL`,
  );
});

it('reads after which release something may be removed', () => {
  const sql = '-- baton: contract after=0.2.0\nALTER TABLE "tasks" DROP COLUMN "note";';
  expect(parseMigration('m', sql).contractAfter).toBe('0.2.0');
  expect(parseMigration('m', 'SELECT 1').contractAfter).toBeUndefined();
});

it.each([
  ['-- baton: concurently\nSELECT 1;', '"-- baton: concurently" is not known'],
  ['-- baton: concurrently\nSELECT 1;', '"SELECT" is not an index with a name'],
  ['-- baton: concurrently\nCREATE INDEX ON "tasks"("id");', 'is not an index with a name'],
  ['-- baton: backfill table=tasks key=id rows=9\nDELETE FROM "tasks";', 'needs one "/* slice */ true"'],
  ['SELECT 1;\n-- baton: concurrently\n', 'has no statement after it'],
  ['ALTER TABEL "tasks";', 'Migration m is not valid SQL: SqlError: syntax error'],
])('refuses %j', (sql, reason) => {
  expect(() => stepsOf(sql)).toThrow(reason);
});

it('reads every migration there is', async () => {
  const migrations = await readMigrations(migrationsFolder());
  expect(migrations.length).toBeGreaterThan(17);
  for (const { steps } of migrations) expect(steps.length).toBeGreaterThan(0);
});
