import { rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { DRIVER } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { installTestAgents, shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';

const startStack = shareStack(DRIVER, CRASH_SETTINGS, {
  installAgents: (agents) => installTestAgents(agents, 'poison', 'fragile'),
});
let stack: Stack;
let token: string;
let slug: string;
let antidote: string;

describe('dead letters', () => {
  beforeAll(async () => {
    stack = await startStack();
    antidote = join(stack.env.EXECUTOR_WRITE!, 'antidote');
    ({ token, slug } = await stack.createTenant());
  });

  it('keeps what used up its attempts, and lets it be said again once the agent is mended', async () => {
    const { result } = await poisoned('poison', 'a bitter pill');
    expect(result?.task.status.state).toBe('TASK_STATE_FAILED');
    const [letter] = await letters();
    expect(letter).toMatchObject({
      request_id: result?.task.id,
      attempts: 2,
      reason: expect.stringMatching(
        /^Given up after 2 attempts. The last one: The agent's process was ended by SIGKILL/,
      ) as string,
      redelivered_at: null,
      redelivered_as: null,
    });
    const shown = JSON.parse(await stack.baton('dead-letters', 'show', letter.run_id as string, '--json'));
    expect(shown).toMatchObject({ taskId: result?.task.id, message: { parts: [{}] } });
    expect(await stack.baton('dead-letters', 'list', '--tenant', slug)).toContain(letter.run_id as string);

    writeFileSync(antidote, '');
    const said = await stack.baton('dead-letters', 'redeliver', letter.run_id as string, '--json');
    const [{ taskId }] = JSON.parse(said) as [{ taskId: string }];
    const task = await ended(taskId);
    expect(task).toMatchObject({
      contextId: 'our-talk',
      status: { state: 'TASK_STATE_COMPLETED' },
      metadata: { 'baton.redelivery': { taskId: result?.task.id, runId: letter.run_id } },
    });
    expect(task.history[0]).toMatchObject({
      parts: [{ text: 'a bitter pill' }],
      referenceTaskIds: [result?.task.id],
    });
    expect((await ended(result?.task.id as string)).status.state).toBe('TASK_STATE_FAILED');
    expect(await letters()).toMatchObject([{ redelivered_as: taskId }]);
    const again = stack.baton('dead-letters', 'redeliver', letter.run_id as string);
    await expect(again).rejects.toThrow(/was redelivered before, as task .*: add --again/);
  });

  it('lets a tenant redeliver its own, once, and no other tenant', async () => {
    rmSync(antidote, { force: true });
    await poisoned('poison', 'once more');
    const [letter] = await letters();
    writeFileSync(antidote, '');
    const path = `/${letter.run_id as string}/redeliver`;
    const { token: stranger } = await stack.createTenant();
    const unknown = await ask('POST', '/00000000-0000-4000-8000-000000000000/redeliver', stranger);
    expect(unknown.status).toBe(404);
    expect(await ask('POST', path, stranger)).toEqual(unknown);
    expect((await ask('GET', '', stranger)).body).toEqual({ dead_letters: [], next_cursor: null });
    const reader = await stack.createToken(slug, 'tasks:read');
    expect((await ask('POST', path, reader)).status).toBe(403);

    const answers = await Promise.all([1, 2, 3].map(() => ask('POST', path)));
    const made = answers.filter(({ status }) => status === 201);
    const ids = new Set(made.map(({ body }) => body.request_id as string));
    expect(ids.size).toBe(1);
    const [taskId] = ids;
    expect((await ended(taskId!)).status.state).toBe('TASK_STATE_COMPLETED');
    const refused = await ask('POST', path);
    expect(refused.status).toBe(400);
    expect(JSON.stringify(refused.body)).toContain(`as task ${taskId}`);
    const again = await ask('POST', `${path}?again=true`);
    expect(again.status).toBe(201);
    expect((await ended(again.body.request_id as string)).status.state).toBe('TASK_STATE_COMPLETED');
  });

  it('fails a task whose agent has one attempt after the first death', async () => {
    rmSync(antidote, { force: true });
    const { result } = await poisoned('fragile', 'carefully');
    expect(result?.task.status.state).toBe('TASK_STATE_FAILED');
    const [letter] = await letters();
    expect(letter).toMatchObject({
      attempts: 1,
      reason: expect.stringMatching(/^Given up after one attempt/) as string,
    });
  });

  it('lists them page by page over HTTP, the latest death first, each once', async () => {
    const all = await letters();
    expect(all.length).toBeGreaterThanOrEqual(3);
    const pages: unknown[][] = [];
    let cursor: string | null = '';
    do {
      const { status, body } = await ask('GET', `?limit=2${cursor && `&cursor=${cursor}`}`);
      expect(status).toBe(200);
      pages.push(body.dead_letters as unknown[]);
      cursor = body.next_cursor as string | null;
    } while (cursor !== null);
    expect(pages.map(({ length }) => length)).toEqual(
      Array.from({ length: pages.length }, (_, page) => Math.min(2, all.length - 2 * page)),
    );
    expect(pages.flat()).toEqual(all);
    const times = all.map(({ died_at }) => died_at as string);
    expect(times).toEqual([...times].sort().reverse());
    for (const query of ['limit=0', 'limit=101', 'cursor=nonsense']) {
      const { status, body } = await ask('GET', `?${query}`);
      expect([query, status]).toEqual([query, 400]);
      expect(JSON.stringify(body)).toContain(query.split('=')[0]);
      expect(JSON.stringify(body)).not.toContain('ageToken');
    }
  });
});

const ask = async (method: 'GET' | 'POST', path: string, bearer = token) => {
  const { status, json } = await stack.rest(bearer).call(method, `/v1/dead-letters${path}`);
  return { status, body: json as Record<string, any> }; // oxlint-disable-line typescript/no-explicit-any -- tests look at the wire
};
const letters = async (): Promise<any[]> => (await ask('GET', '')).body.dead_letters as any[]; // oxlint-disable-line typescript/no-explicit-any
const poisoned = async (agent: string, text: string) =>
  new RawCaller(stack.url(0, agent), token).call(
    'SendMessage',
    sendParams(text, { metadata: { antidote }, contextId: 'our-talk' }),
  );
const ended = async (taskId: string) => {
  const caller = new RawCaller(stack.url(0, 'poison'), token);
  for await (const { data } of caller.stream('SubscribeToTask', { id: taskId }, 0)) void data;
  return (await caller.call('GetTask', { id: taskId })).result!;
};
