import { execFile } from 'node:child_process';
import { join } from 'node:path';
import { promisify } from 'node:util';
import type { Locator, Page } from 'playwright-core';
import { Client } from 'pg';
import { PATIENT, type TestMcpServer, startMcpServer } from '../support/mcp-server/mcp-server.js';
import { textTool } from '../support/mcp-server/script.js';
import { ModelProvider, type ModelRequest, type Reply } from '../support/model-provider/model-provider.js';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { NIGHTLY, nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { PRICES } from '../support/shared-stack.js';
import type { TestTenant } from '../support/stack.js';

/** What an agent may write to get at the token of its reader. */
const HOSTILE = [
  '# A *title*',
  '<script>window.stolen = true</script>',
  '<img src=x onerror="window.stolen = true">',
  '![a picture](https://elsewhere.example/pixel.png)',
  '[a link](javascript:window.stolen=true)',
].join('\n\n');
/** Elements of the page, for which Node has no types. */
interface Shown {
  innerText: string;
  querySelector: (selector: string) => { dateTime: string };
}
interface Scrolled {
  scrollWidth: number;
  clientWidth: number;
}
const ASKING = { metadata: { echo: { askInput: true } } };

describeConsole('tasks in the console', () => {
  const startConsole = ConsoleStack.share({
    OUTBOUND_ALLOW: '127.0.0.1',
    BATON_AGENTS_DIR: join(__dirname, '../agents'),
    ...PRICES,
  });
  let baton: ConsoleStack;
  let tenant: TestTenant;
  let other: TestTenant;
  let caller: RawCaller;
  let provider: ModelProvider;
  let tools: TestMcpServer;
  beforeAll(async () => {
    [baton, provider, tools] = await Promise.all([
      startConsole(),
      ModelProvider.start(),
      startMcpServer({ tools: [textTool('sign', 'signed')] }),
    ]);
    tenant = await baton.stack.createTenant();
    other = await baton.stack.createTenant();
    caller = new RawCaller(baton.stack.url(0), tenant.token);
  });
  afterEach(() => baton.expectNoFaults());
  afterAll(async () => {
    await Promise.all([provider.stop(), tools.stop()]);
  });

  const send = async (text: string, more: { metadata?: object } = {}): Promise<string> => {
    const { result } = await caller.call('SendMessage', sendParams(text, more));
    return (result as { task: { id: string } }).task.id;
  };
  const openTask = (id: string, tab = 'trace'): Promise<Page> =>
    baton.open({ token: tenant.token, path: `/tasks/${id}?tab=${tab}` });
  const openTab = (page: Page, name: string): Promise<void> => page.getByRole('tab', { name }).click();

  const stateTab = (page: Page, state: string): Locator =>
    page
      .getByRole('navigation', { name: 'States of tasks' })
      .getByRole('link', { name: new RegExp(`^${state}`) });

  const createAgent = async (slug: string, settings: object): Promise<void> => {
    const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
    const config = {
      model: 'openai-compatible/m',
      baseUrl: provider.url,
      prompt: `You are ${slug}.`,
      ...settings,
    };
    const body = JSON.stringify({ slug, name: slug, description: `The ${slug}`, runtime: 'llm', config });
    const response = await fetch(`${baton.url}/v1/agents`, { method: 'POST', headers, body });
    if (!response.ok) throw new Error(await response.text());
  };

  it('teach how a task begins, and show it as soon as it has begun', async () => {
    const page = await baton.open({ token: tenant.token, path: '/tasks' });
    await page.getByRole('heading', { name: 'No tasks yet' }).waitFor();
    await baton.expectAccessible(page);
    const id = await send('Hello');
    await page.getByRole('link', { name: id }).waitFor();
    await baton.expectAccessible(page);
  });

  it('are those of the tenant that has signed in', async () => {
    const id = await send('a secret of the first tenant');
    baton.expectFaults(/404/);
    const page = await baton.open({ token: other.token, path: '/tasks' });
    await page.getByRole('heading', { name: 'No tasks yet' }).waitFor();
    await page.goto(`/console/tasks/${id}`);
    await page.getByRole('alert').first().waitFor();
    expect(await page.content()).not.toContain('a secret of the first tenant');
    // What it is refused later would be a fault of the next test.
    await page.close();
  });

  it('show what an agent has written as text that runs and loads nothing', async () => {
    const asked: string[] = [];
    const id = await send(HOSTILE);
    const page = await openTask(id, 'output');
    page.on('request', (request) => asked.push(request.url()));
    await page.getByRole('heading', { name: 'A title' }).first().waitFor();
    await page.getByText('The task has ended.').waitFor();
    expect(await page.evaluate('window.stolen')).toBeUndefined();
    expect(await page.locator('#content script, #content img').count()).toBe(0);
    expect(await page.locator('#content a[href^="javascript"]').count()).toBe(0);
    expect(asked.filter((url) => !url.startsWith(baton.url))).toEqual([]);
    await baton.expectAccessible(page);
  });

  nightlyIt('show JSON in its own order, so that what is approved looks like what it is', async () => {
    const { message } = sendParams('');
    const parts = [{ data: { to: '\u202eexample' } }];
    const { result } = await caller.call('SendMessage', { message: { ...message, parts } });
    const page = await openTask((result as { task: { id: string } }).task.id, 'output');
    await page
      .getByText(String.raw`"to": "\u202eexample"`)
      .first()
      .waitFor();
  });

  it('are answered in place, and the log continues without another look', async () => {
    const id = await send('ask me', ASKING);
    const page = await openTask(id);
    await page.getByLabel('Your answer').fill('here it is');
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: 'Send the answer' }).click();
    await page.getByText('The task has ended.').waitFor();
    await openTab(page, 'Output');
    await page.getByRole('region', { name: 'Artifacts' }).getByText('here it is').waitFor();
    await openTab(page, 'Trace');
    // One run for each of the two messages.
    const runs = page.getByRole('table', { name: 'Runs of the task' });
    await runs.getByRole('cell', { name: 'succeeded' }).nth(1).waitFor();
    expect(await page.getByLabel('Your answer').count()).toBe(0);
  });

  nightlyIt('are found, opened and answered by the keyboard alone', async () => {
    const id = await send('ask me', ASKING);
    const page = await baton.open({ token: tenant.token, path: '/tasks' });
    const tabTo = async (wanted: Locator): Promise<void> => {
      await wanted.waitFor();
      while (
        !(await wanted.evaluate((it: { matches: (selector: string) => boolean }) => it.matches(':focus')))
      )
        await page.keyboard.press('Tab');
    };
    await tabTo(page.getByRole('link', { name: id }));
    await page.keyboard.press('Enter');
    await tabTo(page.getByLabel('Your answer'));
    await page.keyboard.type('blue');
    await tabTo(page.getByRole('button', { name: 'Send the answer' }));
    await page.keyboard.press('Enter');
    await page.getByText('The task has ended.').waitFor();
  });

  it('have tool calls approved and refused in place', async () => {
    provider.answer(signing);
    const mcp = [{ ...PATIENT, name: 'desk', url: tools.url, allow: ['sign'], approval: ['sign'] }];
    await createAgent('signer', { tools: { mcp } });
    const signer = new RawCaller(baton.stack.url(0, 'signer'), tenant.token);
    const ask = async () => {
      const { result } = await signer.call('SendMessage', sendParams('sign page 3'));
      return openTask((result as { task: { id: string } }).task.id);
    };
    const approved = await ask();
    await approved.getByText('May it call').waitFor();
    await baton.expectAccessible(approved);
    expect(tools.calls).toEqual([]);
    await baton.picture(approved, 'approval');
    await approved.getByRole('button', { name: 'Approve desk_sign' }).click();
    await approved.getByText('The task has ended.').waitFor();
    await openTab(approved, 'Output');
    await approved.getByText('The tool says: signed').first().waitFor();
    expect(tools.calls).toMatchObject([{ tool: 'sign', input: { page: 3 } }]);
    await approved.getByRole('row', { name: /^Approvals desk_sign Approved by test / }).waitFor();
    await openTab(approved, 'Log');
    const events = approved.getByRole('list', { name: 'Events of the task' });
    await events.getByText('Approved by test', { exact: true }).waitFor();
    await approved.getByRole('row', { name: /^Usage \d+ → \d+ tokens, [\d.]+ EUR$/ }).waitFor();
    await openTab(approved, 'Trace');
    const calls = approved.getByRole('table', { name: 'Model calls' }).getByRole('row');
    await calls.filter({ hasText: 'Calls desk_sign' }).getByRole('time').waitFor();
    await calls.filter({ hasText: 'stop' }).getByRole('cell', { name: 'openai-compatible/m' }).waitFor();

    const refused = await ask();
    await refused.getByLabel('Reason of a refusal').fill('Page 3 is a draft');
    await refused.getByRole('button', { name: 'Reject desk_sign' }).click();
    await refused.getByText('The task has ended.').waitFor();
    await openTab(refused, 'Output');
    await refused
      .getByText(/The tool says: .*Page 3 is a draft/)
      .first()
      .waitFor();
    expect(tools.calls).toHaveLength(1);
    await refused.getByText('Rejected by test', { exact: true }).first().waitFor();
    await refused.getByRole('row', { name: /^Owner test \(token:.*\)$/ }).waitFor();
    // Names of tokens are for administrators, and for their holders.
    const reader = await baton.stack.createToken(tenant.slug, 'tasks:read');
    const theirs = await baton.open({
      token: reader,
      path: new URL(refused.url()).pathname.replace('/console', ''),
    });
    await theirs
      .getByText(/^Rejected by token:/)
      .first()
      .waitFor();

    // A lead asks the signer, and the page of its task has the whole tree.
    await createAgent('lead', { agents: ['signer'] });
    const lead = new RawCaller(baton.stack.url(0, 'lead'), tenant.token);
    const { result } = await lead.call('SendMessage', sendParams('have page 3 signed'));
    const tree = await openTask((result as { task: { id: string } }).task.id);
    await tree.getByRole('list', { name: 'Child tasks', exact: true }).getByText('signer').waitFor();
    await baton.expectAccessible(tree);

    const usage = await baton.open({ token: tenant.token, path: '/usage' });
    await usage.getByLabel('By', { exact: true }).selectOption('agent');
    await usage.waitForURL(/by=agent/);
    // Not the id that the API has.
    const cost = usage.getByRole('row', { name: /^signer / }).getByRole('cell', { name: / EUR$/ });
    expect(parseFloat(await cost.innerText())).toBeGreaterThan(0);
    await usage.getByLabel('By', { exact: true }).selectOption('owner');
    await usage.getByRole('cell', { name: 'test', exact: true }).waitFor();
  });

  nightlyIt('show answers of models as Markdown, or as they were written', async () => {
    provider.answer(() => ({ text: ['## The pl', 'an\n\n1. Read it.\n', '2. Answer **today**.'] }));
    await createAgent('planner', {});
    const agent = new RawCaller(baton.stack.url(0, 'planner'), tenant.token);
    const { result } = await agent.call('SendMessage', sendParams('plan it'));
    const { id } = (result as { task: { id: string } }).task;
    const page = await openTask(id, 'output');
    await page.getByRole('heading', { name: 'The plan' }).waitFor();
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: 'Show as text' }).click();
    await page.getByText('2. Answer **today**.').waitFor();
    await page.goto(`/console/tasks/${id}/compare?with=${id}`);
    await page.getByText('## The plan').first().waitFor();
  });

  nightlyIt('say in their list why they have failed', async () => {
    provider.answer(() => ({ status: 401 }));
    await createAgent('locked-out', {});
    const agent = new RawCaller(baton.stack.url(0, 'locked-out'), tenant.token);
    const { result } = await agent.call('SendMessage', sendParams('open'));
    const { id } = (result as { task: { id: string } }).task;
    const page = await baton.open({ token: tenant.token, path: '/tasks' });
    await stateTab(page, 'failed').click();
    await page.getByLabel('Since').selectOption('24h');
    const row = page.getByRole('row').filter({ hasText: id });
    await row.getByRole('cell', { name: /refused the key \(401\)/ }).waitFor();
    await row.getByRole('cell', { name: 'locked-out', exact: true }).waitFor();
    await row.getByRole('cell', { name: 'test', exact: true }).waitFor();
    await baton.expectAccessible(page);
    await page.getByLabel('Before').selectOption('1h');
    await page.getByText('No task is like this').waitFor();
    expect(new URL(page.url()).searchParams.get('until')).toBe('1h');
    // Nothing is newer than an hour and older than an hour.
    await page.getByLabel('Since').selectOption('1h');
    await row.waitFor();
    expect(new URL(page.url()).searchParams.get('until')).toBeNull();
    await page.getByRole('link', { name: id }).click();
    await page.getByRole('row', { name: /^Reason .*\(401\)/ }).waitFor();
    const calls = page.getByRole('table', { name: 'Model calls' });
    await calls.getByRole('cell', { name: /^Failed: .*\(401\)/ }).waitFor();
  });

  nightlyIt(
    'say on their page why the code of their agent has failed, and of which agent they are',
    async () => {
      const agent = new RawCaller(baton.stack.url(0, 'hazard'), tenant.token);
      const configuration = { returnImmediately: true };
      const { result } = await agent.call('SendMessage', { ...sendParams('throw'), configuration });
      const page = await openTask((result as { task: { id: string } }).task.id);
      await page.getByRole('row', { name: /^Reason .*thrown by execute/ }).waitFor();
      const about = page.getByRole('table', { name: 'About the task' });
      await about.getByRole('row', { name: 'Agent hazard' }).getByRole('link').waitFor();
    },
  );

  nightlyIt('have tokens of no model, which the usage names', async () => {
    await new RawCaller(baton.stack.url(0, 'teller'), tenant.token).call('SendMessage', sendParams('tell'));
    const page = await baton.open({ token: tenant.token, path: '/usage' });
    await page.getByText('Tokens that agents report without a model are in no cost.').waitFor();
    expect(await page.getByText('These models have no price').count()).toBe(0);
  });

  nightlyIt('say which worker runs them', async () => {
    provider.answer(() => ({ text: ['one ', 'two'], fault: { kind: 'stall', after: 2 } }));
    // It stands still for as long as the test looks.
    await createAgent('slow', { timeout: '1h', firstToken: '1h', stall: '1h' });
    const agent = new RawCaller(baton.stack.url(0, 'slow'), tenant.token);
    const configuration = { returnImmediately: true };
    const { result } = await agent.call('SendMessage', { ...sendParams('think'), configuration });
    const page = await openTask((result as { task: { id: string } }).task.id);
    const worker = page.getByRole('row', { name: /^Worker / }).getByRole('code');
    await worker.waitFor();
    expect(await workersOf(baton.stack.database.url)).toContain(await worker.innerText());
    await page.getByRole('button', { name: 'Cancel the task' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the task' }).click();
    await page.getByText('The task has ended.').waitFor();
    await worker.waitFor({ state: 'detached' });
  });

  nightlyIt('are found by their text at the server, and by their context', async () => {
    const searcher = await baton.stack.createTenant();
    const caller = new RawCaller(baton.stack.url(0), searcher.token);
    const ids: string[] = [];
    for (const text of ['Where is parcel 4711?', 'Where is parcel 4712?']) {
      const { result } = await caller.call('SendMessage', sendParams(text));
      ids.push((result as { task: { id: string } }).task.id);
    }
    const page = await baton.open({ token: searcher.token, path: '/tasks' });
    await page.getByText('2 tasks', { exact: true }).waitFor();
    await page.getByLabel('Search').fill('PARCEL 4711');
    await page.getByText('1 tasks found in the newest 2').waitFor();
    expect(await page.getByRole('table', { name: 'Tasks' }).locator('mark').allInnerTexts()).toEqual([
      'parcel 4711',
    ]);
    await page.getByRole('link', { name: ids[0]! }).waitFor();
    expect(await page.getByRole('link', { name: ids[1]! }).count()).toBe(0);
    expect(new URL(page.url()).searchParams.get('text')).toBe('PARCEL 4711');
    await baton.expectAccessible(page);
    // The agent answers with the second message.
    await caller.call('SendMessage', sendParams('Ask me', { metadata: { echo: { askInput: true } } }));
    const { result } = await caller.call('ListTasks', { status: 'TASK_STATE_INPUT_REQUIRED' });
    const { id: taskId } = (result as { tasks: { id: string }[] }).tasks[0]!;
    await caller.call('SendMessage', sendParams('The crate is in Basel', { taskId }));
    await page.getByLabel('Search').fill('in basel');
    await page.getByText('Answer: The crate is in Basel').waitFor();
    expect(await page.getByRole('table', { name: 'Tasks' }).locator('mark').allInnerTexts()).toEqual([
      'in Basel',
    ]);
    await page.getByRole('link', { name: taskId }).waitFor();
    await baton.expectAccessible(page);
    await page.getByLabel('Search').fill('nobody wrote this');
    await page.getByRole('heading', { name: 'No task is like this' }).waitFor();
    await page.getByRole('link', { name: 'Clear' }).click();
    await page.getByRole('link', { name: 'Tasks of the context' }).nth(1).click();
    await page.getByText('1 tasks', { exact: true }).waitFor();
    expect(await page.getByLabel('Context', { exact: true }).inputValue()).toMatch(/.+/);
  });

  nightlyIt('are those of an owner, who is chosen by name', async () => {
    const id = await send('of an owner');
    const headers = { authorization: `Bearer ${tenant.token}` };
    const response = await fetch(new URL(`/v1/tasks/${id}`, baton.stack.url(0)), { headers });
    const { owner } = (await response.json()) as { owner: string };
    const page = await baton.open({ token: tenant.token, path: '/tasks' });
    await page.locator(`datalist option[label="test"][value="${owner}"]`).waitFor({ state: 'attached' });
    await page.getByRole('link', { name: 'test', exact: true }).first().click();
    await page.waitForURL((url) => url.searchParams.get('owner') === owner);
    expect(await page.getByLabel('Owner', { exact: true }).inputValue()).toBe(owner);
  });

  it('are opened by a click anywhere in their row', async () => {
    const id = await send('open me');
    const page = await baton.open({ token: tenant.token, path: '/tasks' });
    const row = page.getByRole('row').filter({ hasText: id });
    // The link of the row lies above its cells.
    await row.getByRole('cell', { name: 'completed', exact: true }).click({ force: true });
    await page.waitForURL((url) => url.pathname.endsWith(`/tasks/${id}`));
  });

  nightlyIt(
    'are distinguished by their first messages, and by the first sentence of the error in their agent',
    async () => {
      const id = await send('Look at <b>this</b>\n\nparcel');
      await writeError(baton.stack.database.url, id, 'The desk is <i>closed</i>. It opens at 8.');
      const page = await baton.open({ token: tenant.token, path: '/tasks?state=failed' });
      const row = page.getByRole('row').filter({ hasText: id });
      await row.getByText('Look at <b>this</b> parcel', { exact: false }).waitFor();
      await row.getByText('The desk is <i>closed</i>.', { exact: true }).waitFor();
    },
  );

  nightlyIt('are counted by state', async () => {
    const counted = await baton.stack.createTenant();
    const caller = new RawCaller(baton.stack.url(0), counted.token);
    await fill(baton.stack.database.url, counted.slug, 1_500);
    await caller.call('SendMessage', sendParams('ask me', ASKING));
    const page = await baton.open({ token: counted.token, path: '/tasks' });
    await stateTab(page, 'input-required 1$').waitFor();
    await stateTab(page, 'failed 300$').waitFor();
    await stateTab(page, String.raw`completed 1,000\+$`).waitFor();
    await stateTab(page, 'working 0$').waitFor();
    await baton.expectAccessibleInBothSchemes(page);
    await stateTab(page, 'input-required').click();
    await page.getByText('1 tasks', { exact: true }).waitFor();
    await stateTab(page, 'all').click();
    await page.getByText(/tasks loaded/).waitFor();
  });

  it('are compared with another task of the agent', async () => {
    const one = await send('the first text');
    const two = await send('the second text');
    const page = await openTask(one);
    await page.getByRole('link', { name: 'Compare' }).click();
    await page.getByRole('heading', { name: 'Choose the other task' }).waitFor();
    await page.getByLabel('Other task of the agent').selectOption(two);
    const row = (name: string) =>
      page.getByRole('row').filter({ has: page.getByRole('rowheader', { name }) });
    await row('Input').getByText('differs').waitFor();
    await row('Input').getByText('the second text').waitFor();
    await row('Output').getByText('the first text').waitFor();
    expect(await row('State').getByText('differs').count()).toBe(0);
    await page.waitForURL((url) => url.searchParams.get('with') === two);
    await baton.expectAccessible(page);
    // On a phone one stands below the other.
    await page.setViewportSize({ width: 390, height: 800 });
    const comparison = `document.querySelector('[role=region][aria-label=Comparison]')`;
    expect(await page.evaluate<number>(`${comparison}.scrollWidth - ${comparison}.clientWidth`)).toBe(0);
  });

  nightlyIt('show when each event was stored, pieces of artifacts included', async () => {
    const page = await openTask(await send('with times'), 'log');
    const events = page.getByRole('list', { name: 'Events of the task' }).getByRole('listitem');
    await events.filter({ hasText: 'Artifact: ' }).first().getByRole('time').waitFor();
    await page.getByText('The task has ended.').waitFor();
    await events.last().getByRole('time').waitFor();
    expect(await events.count()).toBe(await events.getByRole('time').count());
  });

  nightlyIt('show the same times live and after a reload', async () => {
    const id = await send('ask me', ASKING);
    const page = await openTask(id, 'log');
    const events = page.getByRole('list', { name: 'Events of the task' }).getByRole('listitem');
    const shown = async (): Promise<unknown[]> => {
      await page.getByText('The task has ended.').waitFor();
      // The times come a moment after the events.
      await events
        .filter({ hasNot: page.getByRole('time') })
        .first()
        .waitFor({ state: 'detached' });
      return events.evaluateAll((items: Shown[]) =>
        items.map((item) => [item.innerText.split('\n')[0], item.querySelector('time').dateTime]),
      );
    };
    await page.getByLabel('Your answer').fill('here it is');
    await page.getByRole('button', { name: 'Send the answer' }).click();
    const live = await shown();
    expect(live.length).toBeGreaterThan(4);
    await page.reload();
    expect(await shown()).toEqual(live);
  });

  nightlyIt('are taken up again where they were when the connection is cut', async () => {
    const id = await send('ask me', ASKING);
    const path = `/tasks/${id}?tab=log`;
    const page = await baton.open({ token: tenant.token, path, isNew: true });
    await page.getByLabel('Your answer').waitFor();
    const events = page.getByRole('list', { name: 'Events of the task' }).getByRole('listitem');
    const before = await events.count();
    baton.expectFaults(/ERR_INTERNET_DISCONNECTED|Failed to load resource/);
    // The stream that waits for more events is open: a silent stream is cut.
    let isReloaded = false;
    page.once('domcontentloaded', () => (isReloaded = true));
    const open = page.waitForResponse(
      (response) =>
        // The page before may ask for the same just now.
        isReloaded &&
        response.url().endsWith('/events') &&
        response.request().headers()['last-event-id'] === String(before),
    );
    await page.reload();
    await open;
    await page.context().setOffline(true);
    await page.getByText('The connection is gone.').waitFor();
    await caller.call('SendMessage', {
      message: {
        messageId: 'answer-of-a-cut',
        taskId: id,
        role: 'ROLE_USER',
        parts: [{ text: 'while away' }],
      },
    });
    await page.context().setOffline(false);
    await page.getByText('The task has ended.').waitFor();
    expect(await events.count()).toBeGreaterThan(before);
    const numbers = await events.allInnerTexts();
    expect(new Set(numbers.map((text) => text.split(' ')[0])).size).toBe(numbers.length);
  });

  nightlyIt(
    'show what the code of the agent has written to its console, to those who may change agents',
    async () => {
      const id = await send('with a console');
      await writeConsole(baton.stack.database.url, id, 150);
      const page = await openTask(id, 'log');
      const lines = page.getByRole('table', { name: 'Console of the agent' }).getByRole('row');
      await lines.filter({ hasText: 'line 1 <b>of 150</b>' }).getByRole('cell', { name: 'warn' }).waitFor();
      await page.getByRole('button', { name: 'Show more lines' }).click();
      await lines.filter({ hasText: 'line 150 ' }).waitFor();
      await baton.expectAccessible(page);
      const caller = await baton.stack.createToken(tenant.slug, 'tasks:read', 'agents:call');
      const theirs = await baton.open({ token: caller, path: `/tasks/${id}?tab=log` });
      await theirs.getByText('The task has ended.').waitFor();
      expect(await theirs.content()).not.toContain('of 150');
    },
  );

  nightlyIt('show the durable steps of an agent in code, to those who may change agents', async () => {
    const id = await send('with steps');
    await writeSteps(baton.stack.database.url, id);
    const page = await openTask(id);
    const steps = page.getByRole('table', { name: 'Durable steps' }).getByRole('row');
    await steps.filter({ hasText: 'close account' }).getByRole('cell', { name: 'succeeded' }).waitFor();
    await steps.filter({ hasText: 'send letter' }).getByText('Error: no paper <b>left</b>').waitFor();
    const effects = page.getByRole('table', { name: 'Effects outside' }).getByRole('row');
    await effects.filter({ hasText: 'close account' }).getByRole('cell', { name: 'confirmed' }).waitFor();
    await baton.expectAccessible(page);
    const caller = await baton.stack.createToken(tenant.slug, 'tasks:read', 'agents:call');
    const theirs = await baton.open({ token: caller, path: `/tasks/${id}` });
    await theirs.getByRole('table', { name: 'Runs of the task' }).waitFor();
    expect(await theirs.content()).not.toContain('send letter');
  });

  it('are canceled and sent again', async () => {
    const id = await send('ask me', ASKING);
    const page = await openTask(id);
    await page.getByRole('button', { name: 'Cancel the task' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Cancel the task' }).click();
    await page.getByText('The task has ended.').waitFor();
    await page.getByRole('button', { name: 'Send again' }).click();
    await page.waitForURL(
      (url) => /\/tasks\/[0-9a-f-]{36}$/.test(url.pathname) && !url.pathname.endsWith(id),
    );
  });

  it.each(NIGHTLY ? ['curl', 'SDK code'] : ['curl'])(
    'are sent again by the %s that is copied',
    async (name) => {
      const page = await openTask(await send(`it's me with ${name}`), 'raw');
      await page.evaluate('navigator.clipboard.writeText = async (text) => { window.copied = text }');
      await page.getByRole('button', { name: `Copy as ${name}` }).click();
      await page.getByRole('button', { name: `Copied ${name}` }).waitFor();
      const copied = await page.evaluate<string>('window.copied');
      expect(copied).not.toContain(tenant.token);
      const [program, ...args] =
        name === 'curl' ? ['sh', '-c', copied] : [process.execPath, '--input-type=module', '-e', copied];
      const env = { ...process.env, BATON_TOKEN: tenant.token };
      const { stdout } = await promisify(execFile)(program, args, { env });
      expect(stdout).toContain(`it's me with ${name}`);
      expect(stdout).toMatch(/"state": ?("TASK_STATE_COMPLETED"|3)/);
    },
  );

  it('are thousands, and few of them are in the page', async () => {
    await fill(baton.stack.database.url, other.slug, 5_000);
    const page = await baton.open({ token: other.token, path: '/tasks' });
    const rows = page.getByRole('table', { name: 'Tasks' }).getByRole('row');
    await rows.nth(5).waitFor();
    expect(await rows.count()).toBeLessThan(100);
    // All columns are in sight in a window of 1280 pixels.
    const list = page.getByRole('table', { name: 'Tasks' });
    expect(await list.evaluate((table: Scrolled) => table.scrollWidth - table.clientWidth)).toBe(0);
    await baton.picture(page, 'tasks');
    await page.getByRole('table', { name: 'Tasks' }).focus();
    await page.keyboard.press('End');
    await page.getByText(/^[2-9]\d\d tasks loaded/).waitFor();
    expect(await rows.count()).toBeLessThan(100);
    await stateTab(page, 'failed').click();
    await page.waitForURL(/state=failed/);
    await page.getByRole('cell', { name: 'failed' }).first().waitFor();
    expect(await page.getByRole('cell', { name: 'completed', exact: true }).count()).toBe(0);
  });
});

/** The ids of all workers. */
async function workersOf(databaseUrl: string): Promise<string[]> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`SET baton.tenant = 'system'`);
    const { rows } = await client.query<{ id: string }>('SELECT id FROM workers');
    return rows.map(({ id }) => id);
  } finally {
    await client.end();
  }
}

/** Steps as an agent in code leaves them: one has ended, one has failed. */
async function writeSteps(databaseUrl: string, taskId: string): Promise<void> {
  const at = '2026-01-31T12:00:00.000Z';
  const error = { name: 'Error', message: 'no paper <b>left</b>' };
  const entries = [
    { execution: 1, id: 1, event: 'begun', name: 'close account', kind: 'run', at },
    { execution: 1, id: 1, event: 'ended', at, result: null },
    { execution: 1, id: 2, event: 'begun', name: 'send letter', kind: 'run', at },
    { execution: 1, id: 2, event: 'ended', at, error },
  ];
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`SET baton.tenant = 'system'`);
    await client.query(
      `INSERT INTO turn_journal (tenant_id, task_id, position, run_id, attempt, value)
       SELECT t.tenant_id, t.id, e.position, gen_random_uuid(), 1, e.value
       FROM tasks t, json_array_elements($2::json) WITH ORDINALITY e (value, position) WHERE t.id = $1`,
      [taskId, JSON.stringify(entries)],
    );
  } finally {
    await client.end();
  }
}

/** Makes a task one whose agent, in code, has thrown. */
async function writeError(databaseUrl: string, taskId: string, message: string): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`SET baton.tenant = 'system'`);
    await client.query(`UPDATE runs SET error_detail = $2 WHERE task_id = $1`, [
      taskId,
      JSON.stringify({ attempt: 1, at: '2026-01-31T12:00:00.000Z', message }),
    ]);
    await client.query(`UPDATE tasks SET state = 4, status = '{}' WHERE id = $1`, [taskId]);
  } finally {
    await client.end();
  }
}

/** Lines as an agent in code writes them. */
async function writeConsole(databaseUrl: string, taskId: string, lines: number): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`SET baton.tenant = 'system'`);
    await client.query(
      `INSERT INTO console_lines (tenant_id, task_id, position, run_id, attempt, at, level, text, total_bytes)
       SELECT t.tenant_id, t.id, i, gen_random_uuid(), 1, now(), 'warn', 'line ' || i || ' <b>of 150</b>', 0
       FROM tasks t, generate_series(1, $2::int) i WHERE t.id = $1`,
      [taskId, lines],
    );
  } finally {
    await client.end();
  }
}

/** A model that signs, and then reports the outcome. */
function signing({ body }: ModelRequest): Reply {
  const messages = body.messages as { role: string; content: unknown }[];
  const results = messages.filter(({ role }) => role === 'tool');
  if (results.length > 0) return { text: `The tool says: ${String(results.at(-1)!.content)}` };
  if (JSON.stringify(messages[0]).includes('You are lead'))
    return { calls: [{ name: 'ask_signer', input: { message: 'sign page 3' } }] };
  return { calls: [{ name: 'desk_sign', input: { page: 3 } }] };
}

/** Finished tasks of a tenant; every fifth has failed. */
async function fill(databaseUrl: string, slug: string, tasks: number): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`SET baton.tenant = 'system'`);
    await client.query(
      `INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, last_sequence,
         artifacts_sequence, owner, created_at)
       SELECT t.id, gen_random_uuid(), 'echo', 'context-' || i, md5('context-' || i)::uuid, CASE WHEN i % 5 = 0 THEN 4 ELSE 3 END,
         json_build_object('state', CASE WHEN i % 5 = 0 THEN 'TASK_STATE_FAILED' ELSE 'TASK_STATE_COMPLETED' END,
           'timestamp', to_char((now() - i * interval '1 second') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')),
         now() - i * interval '1 second', 0, 0, 'token:filled', now() - (i + 3) * interval '1 second'
       FROM tenants t, generate_series(1, $2::int) i WHERE t.slug = $1`,
      [slug, tasks],
    );
  } finally {
    await client.end();
  }
}
