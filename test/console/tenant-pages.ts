import type { Page } from 'playwright-core';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { nightlyIt } from '../support/nightly.js';
import { TestBrowser, TestOAuthServer } from '../support/oauth-server.js';
import { MASTER_KEY, PRICES } from '../support/shared-stack.js';
import type { TestTenant } from '../support/stack.js';

describeConsole('the pages of a tenant', () => {
  const startConsole = ConsoleStack.share({
    ...PRICES,
    OUTBOUND_ALLOW: '127.0.0.1',
    BATON_MASTER_KEY: MASTER_KEY,
  });
  let baton: ConsoleStack;
  let tenant: TestTenant;
  beforeAll(async () => {
    baton = await startConsole();
    tenant = await baton.stack.createTenant('admin');
    await baton.stack.baton('tenants', 'limits', tenant.slug, '--tokens-per-day', '1000');
  });
  afterEach(() => baton.expectNoFaults());

  /** A page with its heading there. */
  async function open(path: string, title: string, token = tenant.token): Promise<Page> {
    const page = await baton.open({ token, path });
    await page.getByRole('heading', { name: title, level: 1 }).waitFor();
    return page;
  }
  const dialog = (page: Page) => page.getByRole('dialog');
  const row = (page: Page, text: string) => page.getByRole('row').filter({ hasText: text });

  nightlyIt('fit a window of half the width, as at a zoom of 200 %', async () => {
    const page = await open('/tasks', 'Tasks');
    await page.setViewportSize({ width: 640, height: 800 });
    const paths = [
      '',
      'tasks',
      'agents',
      'playground',
      'schedules',
      'webhooks',
      'bulk',
      'dead-letters',
      'usage',
      'secrets',
      'sign-ins',
      'tokens',
      'audit',
    ];
    const widths: Record<string, number> = {};
    for (const path of paths) {
      await page.goto(`/console/${path}`);
      await page.getByRole('heading', { level: 1 }).waitFor();
      await page.locator('[role="status"][aria-label^="Loading"]').first().waitFor({ state: 'detached' });
      widths[path] = await baton.widthOf(page);
    }
    expect(widths).toEqual(Object.fromEntries(paths.map((path) => [path, 640])));
  });

  it('set secrets, whose values the console never shows again, and delete them after a question', async () => {
    const page = await open('/secrets', 'Secrets');
    await page.getByRole('heading', { name: 'No secrets yet' }).waitFor();
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: 'Set secret' }).click();
    await dialog(page).getByLabel('Name').fill('crm');
    await dialog(page).getByLabel('Value').fill('top-secret-value');
    await dialog(page).getByLabel('Origins').fill('https://crm.example.com');
    await baton.expectAccessible(page);
    await dialog(page).getByRole('button', { name: 'Set secret' }).click();
    await row(page, 'https://crm.example.com').waitFor();
    expect(await page.content()).not.toContain('top-secret-value');
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: 'Delete crm' }).click();
    await dialog(page).getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'No secrets yet' }).waitFor();
  });

  nightlyIt('set the secret that an agent misses where it is missed', async () => {
    const config = { model: 'openai/m', key: 'mine', prompt: 'p' };
    const body = JSON.stringify({ name: 'Keyless', description: 'd', runtime: 'llm', config });
    const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
    const made = await fetch(`${baton.url}/v1/agents/keyless`, { method: 'PUT', headers, body });
    expect(made.status).toBe(201);
    const token = await baton.stack.createToken(tenant.slug, 'agents:call', 'agents:read');
    const theirs = await open('/playground?agent=keyless', 'Playground', token);
    await theirs.getByText('ask for a token with the scope secrets:write').waitFor();
    const page = await open('/playground?agent=keyless', 'Playground');
    await page.getByText('A secret is missing').waitFor();
    await baton.expectAccessibleInBothSchemes(page);
    await page.getByLabel('Value of mine').fill('top-secret-value');
    await page.getByRole('button', { name: 'Set mine' }).click();
    await page.getByText('A secret is missing').waitFor({ state: 'detached' });
    expect(await page.content()).not.toContain('top-secret-value');
    await page.goto('/console/secrets');
    await row(page, 'https://api.openai.com').getByText('mine').waitFor();
    await page.getByRole('button', { name: 'Delete mine' }).click();
    await dialog(page).getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'No secrets yet' }).waitFor();
  });

  nightlyIt('say which field is wrong', async () => {
    baton.expectFaults(/400/);
    const page = await open('/secrets', 'Secrets');
    await page.getByRole('button', { name: 'Set secret' }).click();
    await dialog(page).getByLabel('Name').fill('crm');
    await dialog(page).getByLabel('Value').fill('x');
    await dialog(page).getByLabel('Origins').fill('nowhere');
    await dialog(page).getByRole('button', { name: 'Set secret' }).click();
    await dialog(page).getByRole('alert').waitFor();
  });

  nightlyIt(
    'begin a sign-in at a server, show until when it is good, and sign out after a question',
    async () => {
      const server = await TestOAuthServer.start();
      try {
        const mcp = [{ name: 'crm', url: server.resource, oauth: {} }];
        const config = { model: 'openai/m', prompt: 'p', tools: { mcp } };
        const body = JSON.stringify({ name: 'Desk', description: 'd', runtime: 'llm', config });
        const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
        const made = await fetch(`${baton.url}/v1/agents/desk`, { method: 'PUT', headers, body });
        expect(made.status).toBe(201);
        const page = await open('/sign-ins', 'Sign-ins');
        await page.getByRole('heading', { name: 'No sign-ins yet' }).waitFor();
        await baton.expectAccessibleInBothSchemes(page);
        await page.getByRole('button', { name: 'Sign in' }).click();
        baton.expectFaults(/status of 400/);
        await dialog(page).getByLabel('Agent').fill('desk');
        await dialog(page).getByLabel('Server').fill('erp');
        await dialog(page).getByRole('button', { name: 'Sign in' }).click();
        await dialog(page).getByText('must be one of the servers').first().waitFor();
        await dialog(page).getByLabel('Server').fill('');
        await baton.expectAccessible(page);
        await dialog(page).getByRole('button', { name: 'Sign in' }).click();
        const link = dialog(page).getByRole('link', { name: 'Continue with the sign-in' });
        await link.waitFor();
        await baton.expectAccessibleInBothSchemes(page);
        expect(await link.getAttribute('rel')).toBe('noopener noreferrer');
        const { pathname, search } = new URL((await link.getAttribute('href'))!);
        await new TestBrowser().signIn(new URL(pathname + search, baton.url).href);
        await dialog(page).getByRole('button', { name: 'Done' }).click();
        await row(page, server.resource).getByText('The whole tenant').waitFor();
        await row(page, server.resource).getByText('Refreshed by itself').waitFor();
        await baton.expectAccessibleInBothSchemes(page);
        expect(server.given.length).toBeGreaterThan(0);
        for (const given of server.given) expect(await page.content()).not.toContain(given);
        await page.getByRole('button', { name: `Sign out the whole tenant at ${server.resource}` }).click();
        await dialog(page).getByText('Agents that need this server fail').waitFor();
        await dialog(page).getByRole('button', { name: 'Sign out' }).click();
        await page.getByRole('heading', { name: 'No sign-ins yet' }).waitFor();
        expect(server.revoked).toContain(server.given.at(-1));
      } finally {
        await server.stop();
      }
    },
  );

  it('create tokens, show their secret once, and revoke them', async () => {
    const page = await open('/tokens', 'Tokens');
    await page.getByRole('button', { name: 'Create token' }).click();
    await dialog(page).getByLabel('Name').fill('for the shop');
    await dialog(page).getByRole('button', { name: 'Create token' }).click();
    const secret = await dialog(page).getByLabel('Secret', { exact: true }).textContent();
    await baton.expectAccessible(page);
    const whoami = (token = secret!) =>
      fetch(`${baton.url}/v1/whoami`, { headers: { authorization: `Bearer ${token}` } });
    expect(await (await whoami()).json()).toMatchObject({ scopes: ['agents:call'] });
    await dialog(page).getByRole('button', { name: 'Done' }).click();
    await row(page, 'for the shop').getByText('active').waitFor();
    expect(await page.content()).not.toContain(secret!);
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: 'Rotate for the shop' }).click();
    await dialog(page).getByLabel('The former secret').fill('0');
    await dialog(page).getByRole('button', { name: 'Rotate' }).click();
    const next = await dialog(page).getByLabel('Secret', { exact: true }).textContent();
    await dialog(page).getByRole('button', { name: 'Done' }).click();
    expect((await whoami()).status).toBe(401);
    expect((await whoami(next!)).status).toBe(200);
    await page.getByRole('button', { name: 'Revoke for the shop' }).click();
    await dialog(page).getByText('are refused immediately').waitFor();
    await dialog(page).getByRole('button', { name: 'Revoke' }).click();
    await row(page, 'for the shop').getByText('revoked').waitFor();
    expect((await whoami(next!)).status).toBe(401);
  });

  nightlyIt('create tokens that expire and have a rate, and ask before their secret is gone', async () => {
    const page = await open('/tokens', 'Tokens');
    await page.getByRole('button', { name: 'Create token' }).click();
    await dialog(page).getByLabel('Name').fill('for a week');
    await dialog(page).getByLabel('Expires').selectOption('in 30 days');
    await dialog(page).getByLabel('Requests per second').fill('7');
    await baton.expectAccessible(page);
    await dialog(page).getByRole('button', { name: 'Create token' }).click();
    const secret = dialog(page).getByLabel('Secret', { exact: true });
    await secret.waitFor();
    await page.keyboard.press('Escape');
    await dialog(page).getByRole('alert').getByText('Have you copied it?').waitFor();
    await dialog(page).getByRole('button', { name: 'Close', exact: true }).click();
    expect(await secret.textContent()).toMatch(/^baton_/);
    await baton.expectAccessible(page);
    await dialog(page).getByRole('button', { name: 'Done' }).click();
    await row(page, 'for a week').getByText('7/s').waitFor();
    const answer = await fetch(`${baton.url}/v1/tokens?limit=100`, {
      headers: { authorization: `Bearer ${tenant.token}` },
    });
    const { tokens } = (await answer.json()) as { tokens: { name: string; expires_at: string }[] };
    const expires = Date.parse(tokens.find(({ name }) => name === 'for a week')!.expires_at);
    const days = (expires - Date.now()) / 86_400_000;
    expect(days).toBeGreaterThan(29);
    expect(days).toBeLessThanOrEqual(30);
  });

  it('create webhooks, change them, give them a new secret, and delete them', async () => {
    const page = await open('/webhooks', 'Webhooks');
    await page.getByRole('heading', { name: 'No webhooks yet' }).waitFor();
    await page.getByRole('button', { name: 'Create webhook' }).click();
    await dialog(page).getByLabel('URL').fill('https://1.1.1.1/baton');
    await dialog(page).getByLabel('completed').check();
    await baton.expectAccessible(page);
    await dialog(page).getByRole('button', { name: 'Create webhook' }).click();
    expect(await dialog(page).getByLabel('Secret', { exact: true }).textContent()).toMatch(/^whsec_/);
    await dialog(page).getByRole('button', { name: 'Done' }).click();
    await row(page, '1.1.1.1').getByText('completed').waitFor();
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: 'Edit https://1.1.1.1/baton' }).click();
    expect(await dialog(page).getByLabel('completed').isChecked()).toBe(true);
    await dialog(page).getByLabel('completed').uncheck();
    await dialog(page).getByLabel('failed').check();
    await dialog(page).getByLabel('Enabled').uncheck();
    await baton.expectAccessible(page);
    await dialog(page).getByRole('button', { name: 'Edit' }).click();
    await row(page, '1.1.1.1').getByText('failed').waitFor();
    await row(page, '1.1.1.1').getByText('disabled').waitFor();
    await page.getByRole('button', { name: 'Rotate secret https://1.1.1.1/baton' }).click();
    await dialog(page).getByRole('button', { name: 'Rotate secret' }).click();
    expect(await dialog(page).getByLabel('Secret', { exact: true }).textContent()).toMatch(/^whsec_/);
    await dialog(page).getByRole('button', { name: 'Done' }).click();
    await page.getByRole('button', { name: 'Delete https://1.1.1.1/baton' }).click();
    await dialog(page).getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'No webhooks yet' }).waitFor();
  });

  it('create schedules, run, change, pause and delete them', async () => {
    const page = await open('/schedules', 'Schedules');
    await page.getByRole('heading', { name: 'No schedules yet' }).waitFor();
    await page.getByRole('button', { name: 'Create schedule' }).click();
    await dialog(page).getByLabel('Name').fill('nightly');
    await dialog(page).getByLabel('Agent').fill('echo');
    await dialog(page).getByLabel('Message').fill('Make the report');
    await dialog(page).getByLabel('Times').fill('0 3 * * *');
    await baton.expectAccessible(page);
    await dialog(page).getByRole('button', { name: 'Create schedule' }).click();
    await row(page, 'nightly').getByText('0 3 * * *').waitFor();
    await page.getByRole('button', { name: 'Run nightly now' }).click();
    await page.getByRole('status').getByText('A task was made').waitFor();
    await page.getByRole('button', { name: 'Pause nightly' }).click();
    await row(page, 'nightly').getByText('paused').waitFor();
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: 'Edit nightly' }).click();
    expect(await dialog(page).getByLabel('Message').inputValue()).toBe('Make the report');
    await dialog(page).getByLabel('Times').fill('0 4 * * *');
    await dialog(page).getByRole('button', { name: 'Edit' }).click();
    await row(page, 'nightly').getByText('0 4 * * *').waitFor();
    await page.getByRole('button', { name: 'Delete nightly' }).click();
    await dialog(page).getByRole('button', { name: 'Delete' }).click();
    await page.getByRole('heading', { name: 'No schedules yet' }).waitFor();
  });

  nightlyIt('say what comes to the dead letters', async () => {
    const page = await open('/dead-letters', 'Dead letters');
    await page.getByRole('heading', { name: 'No dead runs' }).waitFor();
    await page.getByRole('heading', { name: 'No dead push notifications' }).waitFor();
    await baton.expectAccessible(page);
  });

  it('show what was used, as a table and as CSV, and how much of the limits', async () => {
    const page = await open('/usage', 'Usage and limits');
    await page
      .getByRole('row', { name: /tokensPerDay/ })
      .getByText('1,000')
      .waitFor();
    await page.getByRole('progressbar', { name: 'tokensPerDay used' }).waitFor({ state: 'attached' });
    await page.getByLabel('By', { exact: true }).selectOption('token');
    await page.getByRole('columnheader', { name: 'Token', exact: true }).waitFor();
    await page.getByText('0.00 EUR').first().waitFor();
    await baton.expectAccessible(page);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      page.getByRole('button', { name: 'Download CSV' }).click(),
    ]);
    expect(download.suggestedFilename()).toBe('usage-by-token.csv');
  });

  it('set spending caps, show how much of them is used, and delete them after a question', async () => {
    await baton.stack.baton('tenants', 'caps', tenant.slug, '--amount', '500', '--period', 'month');
    const page = await open('/usage', 'Usage and limits');
    await row(page, '500.00 EUR').getByText('only the operator changes it').waitFor();
    await page.getByRole('button', { name: 'Set spending cap' }).click();
    await dialog(page).getByLabel('Of', { exact: true }).selectOption('agent');
    baton.expectFaults(/status of 400/);
    await dialog(page).getByLabel('Which one').fill('nobody');
    await dialog(page).getByLabel('Period').selectOption('day');
    await dialog(page).getByLabel('Amount in EUR').fill('2.5');
    await dialog(page).getByLabel('At the limit').selectOption('ask');
    await baton.expectAccessible(page);
    await dialog(page).getByRole('button', { name: 'Set spending cap' }).click();
    await dialog(page).getByText('there is no agent "nobody"').first().waitFor();
    await dialog(page).getByLabel('Which one').fill('echo');
    await dialog(page).getByRole('button', { name: 'Set spending cap' }).click();
    await dialog(page).waitFor({ state: 'detached' });
    await row(page, 'agent echo').getByText('ask a person').waitFor();
    await page.getByRole('progressbar', { name: 'agent echo per day used' }).waitFor({ state: 'attached' });
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: 'Delete agent echo per day' }).click();
    await dialog(page).getByRole('button', { name: 'Delete' }).click();
    await row(page, 'agent echo').waitFor({ state: 'detached' });
  });

  it('are shown to tokens that may see them only', async () => {
    const token = await baton.stack.createToken(tenant.slug, 'agents:call');
    const page = await open('/tokens', 'Tokens', token);
    await page.getByRole('heading', { name: 'Your token may not see this page' }).waitFor();
    expect(await page.getByRole('button', { name: 'Create token' }).count()).toBe(0);
    const links = await page.getByRole('navigation').getByRole('link').allTextContents();
    expect(links.filter((link) => /Secrets|Tokens|Webhooks|Schedules/.test(link))).toEqual([]);
    expect(links).toContain('Dead letters');
    await baton.expectAccessible(page);
  });
});
