import type { Page } from 'playwright-core';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { nightlyIt } from '../support/nightly.js';
import { MASTER_KEY } from '../support/shared-stack.js';
import type { TestTenant } from '../support/stack.js';

/** The code of the page of secrets. */
const SECRETS_CODE = '**/console/assets/secrets-page-*.js';
const STYLES = '**/console/assets/*.css';
/** The browser's message about missing files. */
const MISSING =
  /Failed to (load resource|fetch dynamically)|could not be loaded|ERR_INTERNET_DISCONNECTED|preload/;

describeConsole('a console whose connection fails', () => {
  const startConsole = ConsoleStack.share({ BATON_MASTER_KEY: MASTER_KEY });
  let baton: ConsoleStack;
  let tenant: TestTenant;
  beforeAll(async () => {
    baton = await startConsole();
    tenant = await baton.stack.createTenant('admin');
  });
  afterEach(() => baton.expectNoFaults());

  const open = async (): Promise<Page> => {
    const page = await baton.open({ token: tenant.token, path: '/tasks', isNew: true });
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    return page;
  };
  const secrets = (page: Page) => page.getByRole('heading', { name: 'Secrets', level: 1 });
  const click = (page: Page): Promise<void> =>
    page.getByRole('navigation').getByRole('link', { name: 'Secrets' }).click();

  it('loads itself again, once, when its files have other names after an upgrade', async () => {
    baton.expectFaults(MISSING);
    const page = await open();
    const gone = new Set<string>();
    await page.route(STYLES, (route) => {
      const url = route.request().url();
      if (gone.size > 0) return route.continue();
      gone.add(url);
      return route.fulfill({ status: 404 });
    });
    await click(page);
    await secrets(page).waitFor();
    await page.getByRole('heading', { name: 'No secrets yet' }).waitFor();
    expect(gone.size).toBe(1);
  });

  nightlyIt('shows that this does not help, and tries again on request', async () => {
    baton.expectFaults(MISSING);
    const page = await open();
    let loads = 0;
    page.on('load', () => (loads += 1));
    await page.route(SECRETS_CODE, (route) => route.fulfill({ status: 404 }));
    const loaded = page.waitForEvent('load');
    await click(page);
    await loaded;
    await page.getByText('A file of the console could not be loaded.').waitFor();
    expect(loads).toBe(1);
    await page.unroute(SECRETS_CODE);
    await page.getByRole('button', { name: 'Try again' }).click();
    await secrets(page).waitFor();
  });

  it('stays on its page while it is offline, and shows it', async () => {
    baton.expectFaults(MISSING);
    const page = await open();
    await page.context().setOffline(true);
    await page.getByText('You are offline').waitFor();
    await baton.expectAccessible(page);
    await click(page);
    await page.getByText('A file of the console could not be loaded.').waitFor();
    await page.getByRole('button', { name: 'Try again' }).click();
    await page.getByText('A file of the console could not be loaded.').waitFor();
    await page.context().setOffline(false);
    await page.getByText('You are offline').waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Try again' }).click();
    await secrets(page).waitFor();
  });
});
