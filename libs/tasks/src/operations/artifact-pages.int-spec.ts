import {
  type Artifact,
  type CallContext,
  SPEC_RULES,
  TaskState,
  serializePayload,
  textPart,
  tokenPrincipal,
} from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import { type ClaimedRun, Database, RetentionStore, RunStore, TaskStore } from '@baton/database';
import { randomUUID } from 'node:crypto';
import { createDatabase, type TestDatabase } from '../../../../test/support/index.js';
import { ArtifactPages, type ArtifactPosition, type PageOfArtifacts } from './artifact-pages.js';
import { TaskFinder } from './task-finder.js';
import { userMessage } from '../../../../test/support/agents/turns.js';

const KIB = 1024;
/** The smallest that TASK_READ_BYTES can be, so that a page is small. */
const PAGE_BYTES = 64 * KIB;

let testDatabase: TestDatabase;
let database: Database;
let tasks: TaskStore;
let runs: RunStore;
let pages: ArtifactPages;
beforeAll(async () => {
  testDatabase = await createDatabase();
  database = new Database({ url: testDatabase.url, poolSize: 4 });
  tasks = new TaskStore(database);
  runs = new RunStore(database);
  const environment = loadEnvironment({
    DATABASE_URL: testDatabase.url,
    TASK_READ_BYTES: String(PAGE_BYTES),
  });
  pages = new ArtifactPages(tasks, new TaskFinder(tasks, new RetentionStore(database)), environment);
});
afterAll(async () => {
  await database.close();
  await testDatabase.drop();
});

async function startTask(tenantId: string): Promise<ClaimedRun> {
  const [id, contextId, runId] = [randomUUID(), randomUUID(), randomUUID()];
  const message = userMessage('go', { messageId: randomUUID(), contextId, taskId: id });
  const status = {
    state: TaskState.TASK_STATE_SUBMITTED,
    message: undefined,
    timestamp: new Date().toISOString(),
  };
  const task = { id, contextId, status, artifacts: [], history: [message], metadata: undefined };
  await tasks.create({ tenantId, agentId: 'echo', runId, task, extensions: [] });
  return (await runs.claim(tenantId, runId, 'worker', 30_000))!;
}

/** One event for each; a text of `kib` KiB that begins with the head of the log before it. */
async function say(run: ClaimedRun, head: number, ...said: { id: string; append?: boolean; kib: number }[]) {
  const events = said.map(({ id, append = true, kib }, i) => {
    const parts = [textPart(`${head + i}:`.padEnd(kib * KIB, 'x'))];
    const artifact: Artifact = {
      artifactId: id,
      name: '',
      description: '',
      parts,
      metadata: undefined,
      extensions: [],
    };
    const value = {
      taskId: run.taskId,
      contextId: '',
      artifact,
      append,
      lastChunk: false,
      metadata: undefined,
    };
    const payload = { $case: 'artifactUpdate', value } as const;
    return { payload, json: serializePayload(payload) };
  });
  expect(await runs.append(run, { afterSequence: head, events })).toMatchObject({ ok: true });
  return head + said.length;
}

const callOf = (tenantId: string) =>
  ({
    tenantId,
    principal: tokenPrincipal('token'),
    scopes: ['tasks:read'],
    access: 'read',
    agent: { id: 'echo' },
    rules: SPEC_RULES,
  }) as unknown as CallContext;

async function readAll(
  { tenantId, taskId }: ClaimedRun,
  from?: ArtifactPosition,
): Promise<PageOfArtifacts[]> {
  const read: PageOfArtifacts[] = [];
  for (let position = from, more = true; more;) {
    const page = await pages.page(callOf(tenantId), taskId, position);
    read.push(page);
    position = page.next;
    more = page.next !== undefined;
  }
  return read;
}

/** What a caller makes of the pages: the first words of the texts of each artifact. */
function artifactsOf(read: readonly PageOfArtifacts[]): Record<string, string[]> {
  const known: Record<string, string[]> = {};
  for (const { append, artifact } of read.flatMap(({ pieces }) => pieces)) {
    const said = artifact.parts.map((part) => String(part.content?.value).split(':')[0]!);
    known[artifact.artifactId] = append ? [...(known[artifact.artifactId] ?? []), ...said] : said;
  }
  return known;
}

const bytesOf = ({ pieces }: PageOfArtifacts): number =>
  pieces
    .flatMap(({ artifact }) => artifact.parts)
    .reduce((sum, { content }) => sum + String(content?.value).length, 0);

describe('the artifacts of a task, page by page', () => {
  it('are read to their end, however large they are, in pages that are not', async () => {
    const run = await startTask(randomUUID());
    let head = 2;
    for (let i = 0; i < 10; i++) head = await say(run, head, { id: 'long', kib: 20 }, { id: 'log', kib: 20 });
    const read = await readAll(run);
    expect(read.length).toBeGreaterThan(5);
    for (const page of read) expect(bytesOf(page)).toBeLessThanOrEqual(PAGE_BYTES);
    const numbers = (first: number) => Array.from({ length: 10 }, (_, i) => String(first + 2 * i));
    expect(artifactsOf(read)).toEqual({ long: numbers(2), log: numbers(3) });
    expect(read[0]!.pieces.map(({ append }) => append)).toEqual([false, false]);
    expect(new Set(read.map((page) => page.head))).toEqual(new Set([22]));
  });

  it('show one moment, whatever is said and replaced while they are read', async () => {
    const run = await startTask(randomUUID());
    let head = await say(run, 2, { id: 'a', kib: 40 }, { id: 'a', kib: 40 }, { id: 'b', kib: 40 });
    const first = await pages.page(callOf(run.tenantId), run.taskId);
    head = await say(run, head, { id: 'a', append: false, kib: 1 }, { id: 'c', kib: 1 });
    const rest = await readAll(run, first.next);
    expect(artifactsOf([first, ...rest])).toEqual({ a: ['2', '3'], b: ['4'] });
    expect(artifactsOf(await readAll(run))).toEqual({ a: ['5'], b: ['4'], c: ['6'] });
    expect(head).toBe(7);
  });

  it('do not show what was replaced, also in the log of an earlier release', async () => {
    const run = await startTask(randomUUID());
    await say(run, 2, { id: 'a', kib: 40 }, { id: 'a', kib: 40 }, { id: 'a', append: false, kib: 40 });
    await database.systemQuery({ text: `UPDATE task_events SET artifact = NULL, bytes = NULL` }, []);
    await database.systemQuery({ text: `DELETE FROM artifact_starts` }, []);
    expect(artifactsOf(await readAll(run))).toEqual({ a: ['4'] });
  });

  it('hold an event that is larger than a page alone', async () => {
    const run = await startTask(randomUUID());
    await say(run, 2, { id: 'a', kib: 1 }, { id: 'a', kib: 300 }, { id: 'a', kib: 1 });
    const read = await readAll(run);
    expect(artifactsOf(read)).toEqual({ a: ['2', '3', '4'] });
    expect(read.map(bytesOf)).toEqual([KIB, 300 * KIB, KIB]);
  });

  it('are one empty page where there are none', async () => {
    const run = await startTask(randomUUID());
    expect(await readAll(run)).toEqual([{ head: 2, pieces: [], next: undefined }]);
  });

  it('are not found by another tenant, and not with a cursor of a longer log', async () => {
    const run = await startTask(randomUUID());
    const ask = (tenantId: string, position?: ArtifactPosition) =>
      pages.page(callOf(tenantId), run.taskId, position);
    await expect(ask(randomUUID())).rejects.toMatchObject({ kind: 'task-not-found' });
    await expect(ask(run.tenantId, { head: 9, after: 1 })).rejects.toMatchObject({ kind: 'invalid-params' });
  });
});
