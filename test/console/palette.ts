import type { Page } from 'playwright-core';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY } from '../support/shared-stack.js';
import type { TestTenant } from '../support/stack.js';

describeConsole('the palette of the console', () => {
  const startConsole = ConsoleStack.share({ BATON_MASTER_KEY: MASTER_KEY });
  let baton: ConsoleStack;
  let tenant: TestTenant;
  let other: TestTenant;
  beforeAll(async () => {
    baton = await startConsole();
    [tenant, other] = await Promise.all([
      baton.stack.createTenant('admin'),
      baton.stack.createTenant('admin'),
    ]);
  });
  afterEach(() => baton.expectNoFaults());

  const send = async (of: TestTenant, text: string): Promise<string> => {
    const { result } = await new RawCaller(baton.stack.url(0), of.token).call(
      'SendMessage',
      sendParams(text),
    );
    return (result as { task: { id: string } }).task.id;
  };
  const palette = (page: Page) => page.getByRole('dialog', { name: /^Find/ });
  const chosen = (page: Page) => palette(page).getByRole('option', { selected: true });
  /** Its field, when it has the focus. */
  const field = (page: Page) => palette(page).getByRole('combobox').and(page.locator(':focus'));
  const openWith = async (page: Page, keys: string): Promise<void> => {
    await page.keyboard.press(keys);
    await field(page).waitFor();
  };

  it('opens a page with the keyboard alone, also from a field, and Esc closes it', async () => {
    const page = await baton.open({ token: tenant.token, path: '/tasks' });
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    await openWith(page, 'Control+K');
    await baton.expectAccessibleInBothSchemes(page);
    await page.keyboard.press('Escape');
    await palette(page).waitFor({ state: 'detached' });
    await page.getByRole('textbox').first().focus();
    await openWith(page, 'Meta+K');
    await page.keyboard.type('dead');
    await chosen(page).getByText('Dead letters').waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Dead letters', level: 1 }).waitFor();
    await palette(page).waitFor({ state: 'detached' });
  });

  nightlyIt('finds agents by their name, and the arrows choose', async () => {
    const page = await baton.open({ token: tenant.token, path: '/tasks' });
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    await page.getByRole('button', { name: 'Go to' }).click();
    await field(page).waitFor();
    await page.keyboard.type('e');
    await palette(page).getByRole('option', { name: /^echo/ }).waitFor();
    const labels = await palette(page).getByRole('option').allInnerTexts();
    const place = labels.findIndex((label) => label.startsWith('echo'));
    for (let step = 0; step < place; step += 1) await page.keyboard.press('ArrowDown');
    await chosen(page).getByText('echo', { exact: true }).waitFor();
    await baton.expectAccessible(page);
    for (let step = 0; step < labels.length; step += 1) await page.keyboard.press('ArrowUp');
    await chosen(page).getByText('echo', { exact: true }).waitFor();
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: /echo/i, level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/console/agents/echo');
  });

  it('finds tasks by words of their message and by their id, and none of another tenant', async () => {
    const [id, foreign] = [
      await send(tenant, 'a walrus in Zanzibar'),
      await send(other, 'a walrus elsewhere'),
    ];
    const page = await baton.open({ token: tenant.token, path: '/agents' });
    await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
    await openWith(page, 'Control+K');
    await page.keyboard.type('walrus');
    await chosen(page).getByText('a walrus in Zanzibar').waitFor();
    expect(await palette(page).getByRole('option').count()).toBe(1);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/console/tasks/${id}`);
    await openWith(page, 'Control+K');
    await page.keyboard.insertText(id);
    await chosen(page).getByText('a walrus in Zanzibar').waitFor();
    await palette(page).getByRole('combobox').fill(foreign);
    await chosen(page).getByText('Open the task with this id').waitFor();
    baton.expectFaults(/404/);
    await page.keyboard.press('Enter');
    await page.waitForURL(`**/console/tasks/${foreign}`);
    await page
      .getByText(/not found|no such task/i)
      .first()
      .waitFor();
    await openWith(page, 'Control+K');
    await page.keyboard.type('nothing has these words');
    await palette(page).getByText('Nothing found.').waitFor();
  });

  nightlyIt('shows only what the caller may open', async () => {
    const token = await baton.stack.createToken(tenant.slug, 'secrets:write');
    const page = await baton.open({ token, path: '/secrets' });
    await page.getByRole('heading', { name: 'Secrets', level: 1 }).waitFor();
    await openWith(page, 'Control+K');
    expect(await palette(page).getByRole('option').allInnerTexts()).toEqual([
      expect.stringContaining('Secrets'),
      expect.stringContaining('Sign-ins'),
    ]);
    await page.keyboard.type('walrus');
    await palette(page).getByText('Nothing found.').waitFor();
  });

  it('leads an operator to a task of any tenant by its id alone, without a word of it', async () => {
    const id = await send(other, 'a secret of the other tenant');
    const operator = await baton.stack.baton('operator-tokens', 'create');
    const context = { baseURL: baton.stack.apis[0]!.managementUrl };
    const page = await baton.open({ token: operator, path: '/operators/workers', context });
    await page.getByRole('heading', { name: 'Workers', level: 1 }).waitFor();
    await openWith(page, 'Control+K');
    await baton.expectAccessible(page);
    await page.keyboard.insertText(id);
    await chosen(page).getByText(id).waitFor();
    await page.keyboard.press('Enter');
    await page.getByText(`completed · tenant ${other.slug} · agent echo`).waitFor();
    await page.getByRole('table', { name: 'Runs' }).waitFor();
    await baton.expectAccessible(page);
    expect(await page.content()).not.toContain('a secret of the other tenant');
  });
});
