import type { Page } from 'playwright-core';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import type { TestTenant } from '../support/stack.js';

/** Long enough to be seen while it runs. */
const SLOW = { metadata: { echo: { chunks: 600, delayMs: 1_000 } } };
const SECRET = 'what only the tenant may read';

describeConsole('the console of operators', () => {
  const startConsole = ConsoleStack.share();
  let baton: ConsoleStack;
  let tenant: TestTenant;
  let operator: string;
  beforeAll(async () => {
    baton = await startConsole();
    tenant = await baton.stack.createTenant();
    operator = await baton.stack.baton('operator-tokens', 'create');
  });
  afterEach(() => baton.expectNoFaults());

  const management = () => ({ baseURL: baton.stack.apis[0]!.managementUrl });
  /** A page of the management port with its heading there. */
  async function open(path: string, title: string): Promise<Page> {
    const page = await baton.open({ token: operator, path, context: management() });
    await page.getByRole('heading', { name: title, level: 1 }).waitFor();
    return page;
  }
  const dialog = (page: Page) => page.getByRole('dialog');
  const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text });
  /** Begins a task, and does not wait for its end. */
  async function begin(): Promise<string> {
    const { result } = await new RawCaller(baton.stack.url(0), tenant.token).call('SendMessage', {
      ...sendParams(SECRET, SLOW),
      configuration: { returnImmediately: true },
    });
    return (result as { task: { id: string } }).task.id;
  }

  it('lets in tokens of operators alone, under the same strict policy', async () => {
    baton.expectFaults(/401/);
    const page = await baton.open({ context: management() });
    await page.getByRole('heading', { name: 'Sign in as an operator' }).waitFor();
    await baton.expectAccessible(page);
    await page.getByLabel('Token').first().fill(tenant.token);
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('a token of an operator is required').first().waitFor();
    await page.getByLabel('Token').first().fill(operator);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Workers', level: 1 }).waitFor();
    const links = await page.getByRole('navigation').getByRole('link').allTextContents();
    expect(links).toEqual(['Workers', 'Queue', 'Tenants', 'Usage', 'Find a task']);
    const answers = await Promise.all(
      [baton.url, management().baseURL].map((url) => fetch(`${url}/console/operators/workers`)),
    );
    const [ofTenants, ofOperators] = answers.map((answer) =>
      answer.headers.get('content-security-policy')?.replace(/'nonce-[\w-]+'/, ''),
    );
    expect(ofOperators).toContain("script-src 'self'");
    expect(ofOperators).toBe(ofTenants);
  });

  it('is not at the port of callers', async () => {
    const page = await baton.open({ token: tenant.token, path: '/operators/workers' });
    await page.getByRole('heading', { name: 'There is no such page' }).waitFor();
    await page.goto('/console/tasks');
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    const links = await page.getByRole('navigation').getByRole('link').allTextContents();
    expect(links.filter((link) => /Workers|Queue|Tenants|Find/.test(link))).toEqual([]);
  });

  it('shows the workers, and which of them runs a task, without a word of the task', async () => {
    const id = await begin();
    const [worker] = baton.stack.workers;
    const page = await open('/operators/workers', 'Workers');
    const shown = row(page, `process ${worker!.pid}`);
    await shown.getByText('1 of 100').waitFor();
    await shown.getByText('alive', { exact: true }).waitFor();
    expect(await shown.textContent()).toMatch(/99\d+ MiB\d+\.\d+\.\d+/);
    await page.getByText('1 alive, 1 of 100 slots used, 99 free').waitFor();
    await baton.expectAccessible(page);
    await page.getByRole('link', { name: 'Find a task' }).click();
    await page.getByLabel('Tenant').fill(tenant.slug);
    await page.getByLabel('Id of the task').fill(id);
    await page.getByRole('button', { name: 'Find' }).click();
    await row(page, 'running').getByText(`process ${worker!.pid}`).waitFor();
    await baton.expectAccessible(page);
    expect(await page.content()).not.toContain(SECRET);
    await new RawCaller(baton.stack.url(0), tenant.token).call('CancelTask', { id });
    await row(page, 'canceled').waitFor();
    // A question of an agent is the tenant's as well.
    const { result } = await new RawCaller(baton.stack.url(0), tenant.token).call('SendMessage', {
      ...sendParams(SECRET, { metadata: { echo: { askInput: true } } }),
    });
    const asking = (result as { task: { id: string } }).task.id;
    const path = `/v1/admin/tenants/${tenant.slug}/requests/${asking}`;
    const headers = { authorization: `Bearer ${operator}` };
    const answer = (await (await fetch(`${management().baseURL}${path}`, { headers })).json()) as object;
    expect(answer).toMatchObject({ state: 'input-required' });
    expect(Object.keys(answer)).not.toContain('status_message');
  });

  nightlyIt('shows what waits and since when, and that no worker takes it', async () => {
    await baton.stack.workers[0]!.stop();
    const id = await begin();
    const page = await open('/operators/queue', 'Queue');
    await page.getByRole('link', { name: id }).waitFor();
    await page.getByText('The live workers have 0 slots.').waitFor();
    await page.getByRole('heading', { name: 'No dead letters' }).waitFor();
    const waiting = await page
      .getByRole('table', { name: 'Runs of all tenants' })
      .getByRole('row')
      .filter({ hasText: /^(waiting|queued)/ })
      .allTextContents();
    expect(waiting.filter((text) => /1\d+ (s|min)/.test(text))).toHaveLength(1);
    await baton.expectAccessible(page);
    expect(await page.content()).not.toContain(SECRET);
    await page.getByRole('link', { name: 'Workers' }).click();
    await page.getByRole('heading', { name: 'No worker has sent a heartbeat in the last hour' }).waitFor();
    await baton.expectAccessible(page);
    await baton.stack.addWorker();
    await page.getByText(/^1 alive/).waitFor();
    await page.getByRole('link', { name: 'Queue' }).click();
    await page.getByText('No run waits for a worker.').waitFor();
    await new RawCaller(baton.stack.url(0), tenant.token).call('CancelTask', { id });
  });

  it('shows which tenants take slots, bytes and tokens', async () => {
    const id = await begin();
    const page = await open('/operators/usage', 'Usage of tenants');
    const slug = (await row(page, '1').getByRole('link').first().textContent()) ?? '';
    await row(page, slug).getByRole('cell', { name: '1', exact: true }).first().waitFor();
    await baton.expectAccessible(page);
    await page.getByLabel('Sort by').selectOption('stored bytes');
    await row(page, slug).waitFor();
    await row(page, slug).getByRole('link').click();
    await page.getByRole('heading', { name: slug, level: 1 }).waitFor();
    await new RawCaller(baton.stack.url(0), tenant.token).call('CancelTask', { id });
  });

  it('creates, suspends and resumes tenants, and shows their limits and what they use', async () => {
    const page = await open('/operators/tenants', 'Tenants');
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: 'Create tenant' }).click();
    await dialog(page).getByLabel('Slug').fill('shop');
    await dialog(page).getByRole('button', { name: 'Create tenant' }).click();
    await row(page, 'shop').getByText('active').waitFor();
    const token = await baton.stack.createToken('shop', 'tasks:read');
    const status = async () =>
      (await fetch(`${baton.url}/v1/tasks`, { headers: { authorization: `Bearer ${token}` } })).status;
    expect(await status()).toBe(200);
    await page.getByRole('link', { name: 'shop' }).click();
    await page.getByRole('heading', { name: 'shop', level: 1 }).waitFor();
    await row(page, 'tokensPerDay').waitFor();
    await row(page, 'Runs in execution').getByText('0').waitFor();
    await page.getByRole('button', { name: 'Suspend' }).click();
    await dialog(page).getByLabel('Reason').fill('the bill is not paid');
    await baton.expectAccessible(page);
    await dialog(page).getByRole('button', { name: 'Suspend' }).click();
    await page.getByText('the bill is not paid').waitFor();
    expect(await status()).toBe(403);
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: 'Resume shop' }).click();
    await dialog(page).getByRole('button', { name: 'Resume' }).click();
    await page.getByText('active', { exact: true }).waitFor();
    expect(await status()).toBe(200);
  });
});
