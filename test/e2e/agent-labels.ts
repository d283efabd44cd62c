import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';
import { until } from '../support/until.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

const startStack = shareStack('postgres', { ...CRASH_SETTINGS, OUTBOUND_ALLOW: '127.0.0.1' });
let folder: string;
let stack: Stack;
let tenant: TestTenant;
let provider: ModelProvider;
/** Words in a prompt with which the provider fails. */
let broken: string | undefined;

const definition = (prompt: string, versions: string): object => ({
  name: 'Clerk',
  description: `Says: ${prompt}`,
  runtime: 'llm',
  versions,
  config: { model: 'openai-compatible/clerk-1', baseUrl: provider.url, prompt },
});

describe('the label next of an agent', () => {
  beforeAll(async () => {
    folder = mkdtempSync(join(tmpdir(), 'baton-labels-'));
    provider = await ModelProvider.start();
    // It says its prompt.
    provider.answer(({ body }) => {
      const prompt = body.messages[0].content as string;
      return broken !== undefined && prompt.includes(broken) ? { status: 400 } : { text: prompt };
    });
    stack = await startStack();
    tenant = await stack.createTenant('admin');
  });
  afterEach(() => (broken = undefined));
  afterAll(async () => {
    await provider.stop();
    await stack.killWorkers(stack.workers.slice(1));
    rmSync(folder, { recursive: true });
  });

  it('gives a version a share of new tasks; the card is that of the stable one until next is promoted', async () => {
    await write('shared', definition('stable', 'latest'));
    const file = join(folder, 'next.yaml');
    writeFileSync(file, JSON.stringify(definition('next', 'latest')));
    const said = await stack.baton(
      'agents',
      'next',
      'shared',
      '--share',
      '50',
      '--file',
      file,
      ...stack.cliOptions(tenant.token),
    );
    expect(said).toBe('Version 2 of agent shared gets 50 % of new tasks.');
    const seen = new Set<string>();
    while (seen.size < 2) {
      const task = await send('shared', 'Who?');
      expect(saidIn(task)).toMatch(/^(next|stable)$/);
      seen.add(saidIn(task));
      // It is decided by the id, so that nothing that is repeated gets another version.
      expect(saidIn(task)).toBe(isNext(task.id as string, 50) ? 'next' : 'stable');
      expect(await versionOf(task.id as string)).toBe(saidIn(task) === 'next' ? 2 : 1);
    }
    expect(await stack.baton('agents', 'list', ...stack.cliOptions(tenant.token))).toMatch(
      /^shared .* 1 \(next 2: 50 %\) /m,
    );
    expect((await ask('/agents/shared/.well-known/agent-card.json')).description).toBe('Says: stable');
    expect(await stack.baton('agents', 'promote', 'shared', ...stack.cliOptions(tenant.token))).toContain(
      '(version 3)',
    );
    expect((await ask('/agents/shared/.well-known/agent-card.json')).description).toBe('Says: next');
    expect(saidIn(await send('shared', 'Who?'))).toBe('next');
    expect(await ask('/v1/agents/shared')).not.toHaveProperty('next');
  });

  it('answers its author alone while it has no share', async () => {
    await write('tried', definition('stable', 'latest'));
    await setNext('tried', { share: 0, failures: 1, agent: definition('next', 'latest') });
    for (let i = 0; i < 20; i++) expect(saidIn(await send('tried', 'Who?'))).toBe('stable');
    for (const label of ['next', 'stable', 'next'])
      expect(saidIn(await send('tried', 'Who?', { 'baton-agent-label': label }))).toBe(label);
    // A failure of a version on trial notifies no webhook.
    broken = 'next';
    expect((await send('tried', 'Who?', { 'baton-agent-label': 'next' })).status.state).toBe(
      'TASK_STATE_FAILED',
    );
    expect(await ask('/v1/agents/tried')).toMatchObject({ next: { share: 0 } });
  });

  it('is refused to callers who may not write agents, and if no version has it', async () => {
    await write('plain', definition('stable', 'latest'));
    const next = { 'baton-agent-label': 'next' };
    const { error } = await new RawCaller(stack.url(0, 'plain'), tenant.token)
      .with(next)
      .call('SendMessage', sendParams('Who?'));
    expect(error?.message).toContain('no version of the agent plain has the label next');
    const wrong = await new RawCaller(stack.url(0, 'plain'), tenant.token)
      .with({ 'baton-agent-label': 'newest' })
      .call('SendMessage', sendParams('Who?'));
    expect(wrong.error?.message).toContain('must be next or stable');
    await setNext('plain', { share: 0, agent: definition('next', 'latest') });
    const { token } = JSON.parse(
      await stack.baton('tokens', 'create', '--tenant', tenant.slug, '--scopes', 'agents:call', '--json'),
    );
    const refused = await new RawCaller(stack.url(0, 'plain'), token)
      .with(next)
      .call('SendMessage', sendParams('Who?'));
    expect(refused.error?.message).toContain('agents:write');
  });

  nightlyIt(
    'stays with a task that was accepted with it, also if its worker dies and next is withdrawn: if the agent pins its tasks',
    async () => {
      const accepted: string[] = [];
      for (const versions of ['pinned', 'latest']) {
        await write(versions, definition('stable', versions));
        await setNext(versions, { share: 100, agent: definition('next', versions) });
      }
      await stack.killWorkers();
      for (const slug of ['pinned', 'latest']) {
        accepted.push(await begin(slug));
        await stack.baton('agents', 'withdraw', slug, ...stack.cliOptions(tenant.token));
      }
      await stack.addWorker();
      expect(await Promise.all(accepted.map(async (id) => saidIn(await ended(id))))).toEqual([
        'next',
        'stable',
      ]);
      expect(saidIn(await send('pinned', 'Who?'))).toBe('stable');
    },
  );

  it('ends by itself, once, when the runs of that version fail', async () => {
    broken = 'next';
    await write('failing', definition('stable', 'latest'));
    await setNext('failing', { share: 100, failures: 3, agent: definition('next', 'latest') });
    for (let i = 0; i < 2; i++) await send('failing', 'Who?');
    // The third fails, and the worker that would look dies.
    await send('failing', 'Who?');
    await stack.killWorkers();
    await Promise.all([stack.addWorker(), stack.addWorker()]);
    const { next, next_ended: mark } = await untilEnded('failing');
    expect(next).toBeUndefined();
    expect(mark).toMatchObject({
      version: 2,
      share: 100,
      runs: 3,
      failed: 3,
      stable_runs: 0,
      stable_failed: 0,
    });
    expect(saidIn(await send('failing', 'Who?'))).toBe('stable');
    expect(await stack.baton('agents', 'list', ...stack.cliOptions(tenant.token))).toMatch(
      /^failing .* 1 \(next 2 ended: 3 of 3 runs failed\) /m,
    );
    const { records } = await ask('/v1/audit?action=agent.withdraw');
    expect(records.filter(({ target }: any) => target.name === 'failing')).toMatchObject([
      { actor: { kind: 'platform' }, detail: { version: 2, failed: 3 } },
    ]);
    await stack.baton('agents', 'withdraw', 'failing', ...stack.cliOptions(tenant.token));
    expect(await ask('/v1/agents/failing')).not.toHaveProperty('next_ended');
  });

  it('does not end when the stable version fails as often', async () => {
    broken = 'clerk';
    await write('both', definition('stable clerk', 'latest'));
    await setNext('both', { share: 50, failures: 1, agent: definition('next clerk', 'latest') });
    const seen = new Set<boolean>();
    // A stable task fails first. Else the only runs are failed ones of next.
    while (!seen.has(false)) {
      await setNext('both', { share: 1, failures: 1 });
      seen.add(isNext((await send('both', 'Who?')).id as string, 1));
    }
    await setNext('both', { share: 100, failures: 1 });
    await send('both', 'Who?');
    broken = 'next of another';
    await write('other', definition('stable', 'latest'));
    await setNext('other', { share: 100, failures: 1, agent: definition('next of another', 'latest') });
    await send('other', 'Who?');
    // What looks has looked at both.
    await untilEnded('other');
    expect((await ask('/v1/agents/both')).next).toMatchObject({ version: 2, share: 100 });
  });
});

/** How a task is to be decided. */
const isNext = (taskId: string, share: number): boolean =>
  Number.parseInt(taskId.slice(-8), 16) % 100 < share;

async function send(agent: string, text: string, headers: Record<string, string> = {}): Promise<any> {
  const caller = new RawCaller(stack.url(0, agent), tenant.token).with(headers);
  const { result } = await caller.call('SendMessage', sendParams(text));
  return result!.task;
}

/** Sends a message and does not wait. */
async function begin(agent: string): Promise<string> {
  const params = { ...sendParams('Who?'), configuration: { returnImmediately: true } };
  const { result } = await new RawCaller(stack.url(0, agent), tenant.token).call('SendMessage', params);
  return result!.task.id as string;
}

const ask = (path: string, method = 'GET', body?: object): Promise<any> =>
  stack.rest(tenant.token).write(method, path, body);

const write = (slug: string, agent: object): Promise<unknown> => ask(`/v1/agents/${slug}`, 'PUT', agent);
const setNext = (slug: string, next: object): Promise<unknown> => ask(`/v1/agents/${slug}/next`, 'PUT', next);

const versionOf = async (id: string): Promise<number> => (await ask(`/v1/tasks/${id}`)).agent_version;

async function untilEnded(slug: string): Promise<any> {
  return until(async () => {
    const agent = await ask(`/v1/agents/${slug}`);
    return agent.next_ended ? agent : undefined;
  });
}

const ended = (id: string): Promise<any> => stack.rest(tenant.token).endedTask(id);

const saidIn = ({ status, artifacts }: any): string => (status.message ?? artifacts[0]).parts[0].text;
