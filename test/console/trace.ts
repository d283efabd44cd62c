import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Client } from 'pg';
import type { Page } from 'playwright-core';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { startMcpServer, type TestMcpServer } from '../support/mcp-server/mcp-server.js';
import { heldTool, textTool } from '../support/mcp-server/script.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY } from '../support/shared-stack.js';
import type { TestTenant } from '../support/stack.js';

/** Calls of models and of tools of a task, each. */
const CALLS = 2_500;
/** Events of the same task that have pieces of its answer. */
const CHUNKS = 10_000;
/** As the page has it. */
interface Scroller {
  scrollTop: number;
  scrollHeight: number;
}

describeConsole('the trace of a task', () => {
  const held = heldTool('hold', 'let go');
  const startConsole = ConsoleStack.share({
    OUTBOUND_ALLOW: '127.0.0.1',
    BATON_MASTER_KEY: MASTER_KEY,
    PUSH_NOTIFICATIONS: 'all',
  });
  let baton: ConsoleStack;
  let tenant: TestTenant;
  let provider: ModelProvider;
  let server: TestMcpServer;
  beforeAll(async () => {
    [provider, server] = await Promise.all([
      ModelProvider.start(),
      startMcpServer({ tools: [textTool('pay', 'paid in full'), held] }),
    ]);
    baton = await startConsole();
    tenant = await baton.stack.createTenant();
    const mcp = [{ name: 'desk', url: server.url, allow: ['pay'], approval: ['pay'] }];
    await createAgent('payer', { prompt: 'Pay.', tools: { mcp } });
  });
  afterEach(() => baton.expectNoFaults());
  afterAll(async () => {
    await Promise.all([provider.stop(), server.stop()]);
  });

  const createAgent = async (name: string, more: object): Promise<void> => {
    const config = { model: 'openai-compatible/m', baseUrl: provider.url, prompt: 'Help.', ...more };
    const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ name, description: name, runtime: 'llm', config });
    const made = await fetch(`${baton.url}/v1/agents/${name}`, { method: 'PUT', headers, body });
    expect(made.status).toBe(201);
  };
  const open = async (id: string): Promise<Page> => {
    const page = await baton.open({ token: tenant.token, path: `/tasks/${id}` });
    await page.getByRole('list', { name: 'Trace of the task' }).waitFor();
    return page;
  };
  const trace = (page: Page) => page.getByRole('list', { name: 'Trace of the task' });
  const row = (page: Page, name: RegExp) => trace(page).getByRole('button', { name });

  it('shows turns, waits, calls and questions on one axis, and one click opens what a call has said', async () => {
    provider.reply(
      { reasoning: 'He wants to pay.', calls: [{ name: 'desk_pay', input: { euros: 4711 } }] },
      { text: 'It is paid.' },
    );
    const caller = new RawCaller(baton.stack.url(0, 'payer'), tenant.token);
    const { id } = (await caller.call('SendMessage', sendParams('pay the rent'))).result!.task as {
      id: string;
    };
    const page = await open(id);
    await row(page, /^question input-required .* waiting$/).waitFor();
    await caller.call('SendMessage', sendParams('yes', { taskId: id }));
    // It looks again by itself.
    await row(page, /^turn 2 .* succeeded$/).waitFor();
    const question = row(page, /^question input-required .* succeeded$/);
    await question.click();
    await trace(page).getByText('Answered by test').waitFor();
    await question.click();
    await row(page, /^tool desk_pay .* succeeded$/).click();
    await trace(page).getByText('"euros": 4711').waitFor();
    await trace(page).getByText('paid in full').waitFor();
    await row(page, /^model openai-compatible\/m /)
      .last()
      .click();
    await trace(page).getByText('Answer', { exact: true }).waitFor();
    await trace(page).getByText('It is paid.').waitFor();
    await baton.expectAccessible(page);
    await baton.picture(page, 'trace');
    expect(await baton.widthOf(page)).toBe(page.viewportSize()?.width);
  });

  it('shows why a call of a model failed', async () => {
    provider.reset();
    provider.reply({ status: 402, error: 'Pay first.' });
    const caller = new RawCaller(baton.stack.url(0, 'payer'), tenant.token);
    const { id } = (await caller.call('SendMessage', sendParams('pay'))).result!.task as { id: string };
    const page = await open(id);
    await row(page, /^model openai-compatible\/m .* failed$/).click();
    await trace(page)
      .getByText(/has no credit left/)
      .waitFor();
  });

  it('shows the request to a model to those who may read it, and to others the scope that they lack', async () => {
    provider.reset();
    provider.reply({ text: 'Nothing is due.' });
    await createAgent('clerk', { prompt: 'Be <b>thrifty</b>.', record: 'all' });
    const caller = new RawCaller(baton.stack.url(0, 'clerk'), tenant.token);
    const { id } = (await caller.call('SendMessage', sendParams('what is due?'))).result!.task as {
      id: string;
    };
    const scopes = ['agents:call', 'agents:write', 'tasks:read'];
    const openedWith = async (...more: string[]): Promise<Page> => {
      const token = await baton.stack.createToken(tenant.slug, ...scopes, ...more);
      const page = await baton.open({ token, path: `/tasks/${id}` });
      await row(page, /^model openai-compatible\/m /).click();
      await trace(page).getByText('Nothing is due.').first().waitFor();
      return page;
    };
    const reader = await openedWith('records:read');
    await trace(reader).getByText('Sent: instructions').waitFor();
    await trace(reader).getByText('Be <b>thrifty</b>.').waitFor();
    await trace(reader).getByText('what is due?').waitFor();
    await trace(reader).getByText('Sent: parameters').waitFor();
    await baton.expectAccessibleInBothSchemes(reader);
    const other = await openedWith();
    await trace(other).getByText('a token that has the scope records:read').waitFor();
    expect(await other.content()).not.toContain('thrifty');
  });

  nightlyIt('shows a call of a tool while it is made', async () => {
    provider.reset();
    provider.reply({ calls: [{ name: 'desk_hold', input: {} }] }, { text: 'Done.' });
    await createAgent('holder', { tools: { mcp: [{ name: 'desk', url: server.url, allow: ['hold'] }] } });
    const caller = new RawCaller(baton.stack.url(0, 'holder'), tenant.token);
    const configuration = { returnImmediately: true };
    const { result } = await caller.call('SendMessage', { ...sendParams('hold on'), configuration });
    const page = await open((result as { task: { id: string } }).task.id);
    await row(page, /^tool desk_hold .* running$/).waitFor();
    held.release();
    await row(page, /^tool desk_hold .* succeeded$/).waitFor();
    expect(await row(page, /^tool /).count()).toBe(1);
  });

  nightlyIt('opens the trace of another task below the call that has begun it', async () => {
    provider.reset();
    provider.reply(
      { calls: [{ name: 'ask_helper', input: { message: 'help me' } }] },
      { text: 'I have helped.' },
      { text: 'All is done.' },
    );
    await createAgent('helper', {});
    await createAgent('lead', { agents: ['helper'] });
    const caller = new RawCaller(baton.stack.url(0, 'lead'), tenant.token);
    const { result } = await caller.call('SendMessage', sendParams('lead'));
    const page = await open((result as { task: { id: string } }).task.id);
    // What is open below a row has buttons of its own.
    const names = () =>
      row(page, / (succeeded|running|waiting)$/).evaluateAll((rows: { innerText: string }[]) =>
        rows.map(({ innerText }) => innerText),
      );
    const indexOf = async (text: string) => (await names()).findIndex((each) => each.startsWith(text));
    const child = row(page, /^child helper .* succeeded$/);
    await child.waitFor();
    expect(await indexOf('child')).toBe((await indexOf('tool')) + 1);
    const before = (await names()).length;
    await child.click();
    await row(page, /^model /)
      .nth(2)
      .waitFor();
    expect((await names())[(await indexOf('child')) + 1]).toMatch(/^turn 1/);
    await row(page, /^model /)
      .first()
      .click();
    await trace(page).getByText('Calls ask_helper').waitFor();
    await row(page, /^model /)
      .nth(1)
      .click();
    await trace(page).getByText('I have helped.').waitFor();
    await baton.expectAccessible(page);
    await child.click();
    await row(page, /^model /)
      .nth(2)
      .waitFor({ state: 'detached' });
    expect((await names()).length).toBe(before);
  });

  nightlyIt(
    'shows the spans that are looked for below those around them, by keyboard and in its address',
    async () => {
      const caller = new RawCaller(baton.stack.url(0), tenant.token);
      const { result } = await caller.call('SendMessage', sendParams('many calls'));
      const { id } = (result as { task: { id: string } }).task;
      await writeCalls(baton.stack.database.url, id);
      const page = await open(id);
      const bar = page.getByRole('search', { name: 'Spans of the trace' });
      const said = bar.getByRole('status');
      await said.getByText('5,003 spans', { exact: true }).waitFor();
      await baton.expectAccessibleInBothSchemes(page);
      await bar.getByLabel('Find a span').focus();
      await page.keyboard.type('LAST');
      await said.getByText('1 of 5,003 spans match').waitFor();
      await row(page, /^tool last /).waitFor();
      await row(page, /^turn 1 /).waitFor();
      expect(await row(page, /^model /).count()).toBe(0);
      await baton.expectAccessibleInBothSchemes(page);
      // An address is read, and what is chosen on the page changes it.
      await page.goto(`/console/tasks/${id}?tab=trace&kind=tool&slow=1s`);
      await said.getByText('2,001 of 5,003 spans match').waitFor();
      await page.keyboard.press('Tab');
      await bar.getByLabel('Takes').selectOption('10s');
      await said.getByText('0 of 5,003 spans match').waitFor();
      expect(new URL(page.url()).search).toBe('?tab=trace&kind=tool&slow=10s');
      await bar.getByLabel('Takes').selectOption('');
      await said.getByText('2,500 of 5,003 spans match').waitFor();
      await bar.getByLabel('Errors only').focus();
      await page.keyboard.press('Space');
      await said.getByText('0 of 5,003 spans match').waitFor();
      await page.getByRole('tab', { name: 'Log' }).click();
      await page.getByRole('tab', { name: 'Trace' }).click();
      await said.getByText('0 of 5,003 spans match').waitFor();
      await bar.getByRole('button', { name: 'Clear' }).focus();
      await page.keyboard.press('Enter');
      await said.getByText('5,003 spans', { exact: true }).waitFor();
      expect(new URL(page.url()).search).toBe('?tab=trace');
    },
  );

  it('has the deliveries to a push receiver with their answers, also after the end of the task', async () => {
    const answers = [503];
    const receiver = createServer((request, response) => {
      request.resume().on('end', () => response.writeHead(answers.shift() ?? 204).end());
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    try {
      const { port } = receiver.address() as AddressInfo;
      const caller = new RawCaller(baton.stack.url(0), tenant.token);
      const taskPushNotificationConfig = { url: `http://127.0.0.1:${port}/secret-path` };
      const configuration = { taskPushNotificationConfig };
      const { result, error } = await caller.call('SendMessage', { ...sendParams('tell me'), configuration });
      expect(error).toBeUndefined();
      const page = await open((result as { task: { id: string } }).task.id);
      await row(page, new RegExp(`^push 127.0.0.1:${port} .* succeeded$`)).waitFor();
      await row(page, /^delivery HTTP 503 .* failed$/).waitFor();
      await row(page, /^delivery HTTP 204 .* succeeded$/)
        .last()
        .waitFor();
      expect(await trace(page).innerText()).not.toContain('secret-path');
    } finally {
      receiver.close();
    }
  });

  nightlyIt('has thousands of spans and events, of which few are in the page', async () => {
    const caller = new RawCaller(baton.stack.url(0), tenant.token);
    const { message } = sendParams('a lot ');
    const { result } = await caller.call('SendMessage', {
      message: { ...message, metadata: { echo: { chunks: CHUNKS } } },
    });
    const { id } = (result as { task: { id: string } }).task;
    await writeCalls(baton.stack.database.url, id);
    const page = await open(id);
    await row(page, /^model openai\/m /)
      .first()
      .waitFor();
    expect(await row(page, /./).count()).toBeLessThan(100);
    const whole = await trace(page).getByRole('listitem').first().getAttribute('aria-setsize');
    expect(Number(whole)).toBe(2 * CALLS + 3);
    const scroller = page.getByRole('region', { name: 'Trace of the task' });
    await scroller.evaluate((it: Scroller) => (it.scrollTop = it.scrollHeight));
    await row(page, /^tool last /).waitFor();
    await row(page, /^tool last /).click();
    await trace(page).getByText('the end of it').waitFor();
    expect(await row(page, /./).count()).toBeLessThan(100);
    const calls = page.getByRole('table', { name: 'Effects' }).getByRole('row');
    expect(await calls.count()).toBe(1 + 100);
    await page.getByRole('button', { name: 'Show more rows of Effects' }).click();
    await calls.nth(200).waitFor();
    await baton.expectAccessible(page);
    // Submitted, working, the pieces, completed.
    const events = CHUNKS + 3;
    await page.getByRole('row', { name: `Events ${events}` }).waitFor();
    await page.getByRole('tab', { name: 'Log' }).click();
    const entries = page.getByRole('list', { name: 'Events of the task' }).getByRole('listitem');
    await entries.filter({ hasText: '1 · Message of the caller' }).waitFor();
    const log = page.getByRole('region', { name: 'Events of the task' });
    await log.evaluate((it: Scroller) => (it.scrollTop = it.scrollHeight));
    await entries.filter({ hasText: `${events} · completed` }).waitFor();
    expect(await entries.count()).toBeLessThan(100);
    await page.getByRole('tab', { name: 'Output' }).click();
    const text = await page.getByRole('region', { name: 'Artifacts' }).innerText();
    expect(text.split('a lot').length - 1).toBe(CHUNKS);
  });
});

/** As an llm agent would have written them: calls of a model and of a tool in turns. */
async function writeCalls(url: string, taskId: string): Promise<void> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    await client.query(`SET baton.tenant = 'system'`);
    await client.query(
      `INSERT INTO turn_journal (tenant_id, task_id, run_id, attempt, position, value)
       SELECT tenant_id, task_id, id, 1, i, CASE i % 2
         WHEN 1 THEN json_build_object('kind', 'step', 'at', '2026-01-31T12:00:00.000Z', 'ms', i, 'model', 'openai/m', 'finish', 'stop',
           'message', json_build_object('content', ''), 'usage', json_build_object('inputTokens', 1, 'outputTokens', 1))
         ELSE json_build_object('kind', 'result', 'call', 'call-1-1', 'tool', CASE i WHEN $2 THEN 'last' ELSE 'search' END,
           'at', '2026-01-31T12:00:00.000Z', 'ms', i, 'result', json_build_object('ok', true, 'content', 'the end of it')) END
       FROM runs, generate_series(1, $2::int) i WHERE task_id = $1`,
      [taskId, 2 * CALLS],
    );
  } finally {
    await client.end();
  }
}
