import type { Page } from 'playwright-core';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { startMcpServer, type TestMcpServer } from '../support/mcp-server/mcp-server.js';
import { textTool } from '../support/mcp-server/script.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import type { TestTenant } from '../support/stack.js';

describeConsole('the trace of a task', () => {
  let baton: ConsoleStack;
  let tenant: TestTenant;
  let provider: ModelProvider;
  let server: TestMcpServer;
  beforeAll(async () => {
    [provider, server] = await Promise.all([
      ModelProvider.start(),
      startMcpServer({ tools: [textTool('pay', 'paid in full')] }),
    ]);
    baton = await ConsoleStack.start({
      env: { OUTBOUND_ALLOW: '127.0.0.1', BATON_MASTER_KEY: Buffer.alloc(32, 7).toString('base64') },
    });
    tenant = await baton.stack.createTenant();
    const mcp = [{ name: 'desk', url: server.url, allow: ['pay'], approval: ['pay'] }];
    const config = { model: 'openai-compatible/m', baseUrl: provider.url, prompt: 'Pay.', tools: { mcp } };
    const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
    const body = JSON.stringify({ name: 'payer', description: 'Pays', runtime: 'llm', config });
    const made = await fetch(`${baton.url}/v1/agents/payer`, { method: 'PUT', headers, body });
    expect(made.status).toBe(201);
  });
  afterEach(() => baton.expectNoFaults());
  afterAll(async () => {
    await baton.stop();
    await Promise.all([provider.stop(), server.stop()]);
  });

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
    await row(page, /^question input-required .* succeeded$/).waitFor();
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

  it('says why a call of a model failed', async () => {
    provider.reset();
    provider.reply({ status: 402, error: 'Pay first.' });
    const caller = new RawCaller(baton.stack.url(0, 'payer'), tenant.token);
    const { id } = (await caller.call('SendMessage', sendParams('pay'))).result!.task as { id: string };
    const page = await open(id);
    await row(page, /^model openai-compatible\/m .* failed$/).click();
    await page
      .getByText(/has no credit left/)
      .nth(1)
      .waitFor();
  });

  it('shows what a model was sent to those who may read it, and tells others what they lack', async () => {
    provider.reset();
    provider.reply({ text: 'Nothing is due.' });
    const config = { model: 'openai-compatible/m', baseUrl: provider.url, prompt: 'Be <b>thrifty</b>.' };
    const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
    const body = JSON.stringify({
      name: 'clerk',
      description: 'Looks',
      runtime: 'llm',
      config: { ...config, record: 'all' },
    });
    const made = await fetch(`${baton.url}/v1/agents/clerk`, { method: 'PUT', headers, body });
    expect(made.status).toBe(201);
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
});
