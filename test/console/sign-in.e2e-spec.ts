import { ConsoleStack, describeConsole } from '../support/console.js';
import type { TestTenant } from '../support/stack.js';

describeConsole('sign-in to the console', () => {
  let baton: ConsoleStack;
  let tenant: TestTenant;
  beforeAll(async () => {
    baton = await ConsoleStack.start();
    tenant = await baton.stack.createTenant();
  });
  afterEach(() => baton.expectNoFaults());
  afterAll(() => baton.stop());

  it('leads from the root over the sign-in to the page that was asked for', async () => {
    const page = await baton.open({ path: '/tasks?state=TASK_STATE_FAILED' });
    await page.getByRole('heading', { name: 'Sign in to Baton' }).waitFor();
    await baton.expectAccessible(page);
    await page.getByLabel('Token').first().fill(tenant.token);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/console/tasks');
    expect(page.url()).toContain('TASK_STATE_FAILED');
    expect(page.url()).not.toContain(tenant.token);
    const stored = await page.evaluate<string[]>(
      '[JSON.stringify(sessionStorage), JSON.stringify(localStorage)]',
    );
    expect(stored[0]).toContain(tenant.token);
    expect(stored[1]).not.toContain(tenant.token);
    await page.reload();
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
  });

  it('says what is wrong with a token, and lets nobody in', async () => {
    baton.expectFaults(/401/);
    const page = await baton.open();
    await page.getByLabel('Token').first().fill('baton_wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('the token is not known', { exact: true }).first().waitFor();
    expect(new URL(page.url()).pathname).toBe('/console/sign-in');
  });

  it('shows who has signed in, and forgets the token when they leave', async () => {
    const token = await baton.stack.createToken(tenant.slug, 'agents:call');
    const page = await baton.open({ token });
    await page.getByRole('button', { name: /^test/ }).click();
    await page.getByText('May do: agents:call').waitFor();
    await page.getByText(`Tenant ${tenant.slug}`).waitFor();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Baton' }).waitFor();
    expect(await page.evaluate('JSON.stringify(sessionStorage)')).not.toContain(token);
  });

  it('says when a token is no longer good', async () => {
    baton.expectFaults(/401/);
    const token = await baton.stack.createToken(tenant.slug, 'tasks:read');
    const page = await baton.open({ token, path: '/tasks' });
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    const headers = { authorization: `Bearer ${await baton.stack.createToken(tenant.slug, 'admin')}` };
    const whoami = await fetch(`${baton.url}/v1/whoami`, { headers: { authorization: `Bearer ${token}` } });
    const { token: own } = (await whoami.json()) as { token: { id: string } };
    expect((await fetch(`${baton.url}/v1/tokens/${own.id}`, { method: 'DELETE', headers })).status).toBe(200);
    await page.reload();
    await page.getByText('the token was revoked').waitFor();
  });

  it('is readable in the dark', async () => {
    const page = await baton.open({ token: tenant.token, context: { colorScheme: 'dark' } });
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    await baton.expectAccessible(page);
  });
});
