import type { Locator, Page } from 'playwright-core';
import { Client } from 'pg';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY } from '../support/shared-stack.js';
import type { TestTenant } from '../support/stack.js';

interface Scrolled {
  scrollTop: number;
  scrollTo: (place: { top: number }) => void;
}

describeConsole('lists in the console', () => {
  const startConsole = ConsoleStack.share({ BATON_MASTER_KEY: MASTER_KEY });
  let baton: ConsoleStack;
  let tenant: TestTenant;
  let caller: RawCaller;
  beforeAll(async () => {
    baton = await startConsole();
    tenant = await baton.stack.createTenant('admin');
    caller = new RawCaller(baton.stack.url(0), tenant.token);
    await fill(baton.stack.database.url, tenant.slug, 1_000);
  });
  afterEach(() => baton.expectNoFaults());

  const send = async (text: string): Promise<string> => {
    const { result } = await caller.call('SendMessage', sendParams(text));
    return (result as { task: { id: string } }).task.id;
  };
  const create = async (what: string, body: object): Promise<void> => {
    const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
    const response = await fetch(`${baton.url}/v1/${what}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(await response.text());
  };
  const open = (path: string): Promise<Page> => baton.open({ token: tenant.token, path });
  const list = (page: Page): Locator => page.getByRole('table', { name: 'Tasks' });
  const scrollTo = (table: Locator, top: number): Promise<void> =>
    table.evaluate((it: Scrolled, place) => it.scrollTo({ top: place }), top);
  const scrollTop = (table: Locator): Promise<number> => table.evaluate((it: Scrolled) => it.scrollTop);
  const texts = (table: Locator): Promise<string[]> => table.getByRole('link').allInnerTexts();

  it('stand where they stood when the user comes back, with all rows that were read', async () => {
    const page = await open('/tasks');
    await page.getByText('100 tasks loaded').waitFor();
    await scrollTo(list(page), 100_000);
    await page.getByText('200 tasks loaded').waitFor();
    await scrollTo(list(page), 4_000);
    // The row that is in the middle of the list then.
    const row = list(page).locator('[aria-rowindex="105"]');
    await row.waitFor();
    await row.getByRole('link').first().click();
    await page.getByRole('table', { name: 'About the task' }).waitFor();
    await page.goBack();
    await row.waitFor();
    expect(await scrollTop(list(page))).toBe(4_000);
    await page.getByText('200 tasks loaded').waitFor();
    // Another visit begins at the top.
    await page.getByRole('navigation').getByRole('link', { name: 'Agents' }).click();
    await page.getByRole('table', { name: 'Agents' }).waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Tasks' }).click();
    await list(page).locator('[aria-rowindex="2"]').waitFor();
    expect(await scrollTop(list(page))).toBe(0);
  });

  nightlyIt('do not move their rows while a user reads them, and offer what is new', async () => {
    const page = await open('/tasks');
    await page.getByText('100 tasks loaded').waitFor();
    await scrollTo(list(page), 800);
    // Row 22 stands in the list before it is scrolled, too: the list is drawn anew when its first row is gone.
    await list(page).locator('[aria-rowindex="2"]').waitFor({ state: 'detached' });
    await list(page).locator('[aria-rowindex="22"]').waitFor();
    const before = await texts(list(page));
    const id = await send('a new one');
    await page.getByRole('button', { name: 'Show 1 new or changed task' }).waitFor();
    expect(await texts(list(page))).toEqual(before);
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: 'Show 1 new or changed task' }).click();
    await page.getByRole('link', { name: id }).waitFor();
    // Nor do they under the pointer.
    await list(page).locator('[aria-rowindex="3"]').hover();
    const other = await send('another one');
    await page.getByRole('button', { name: 'Show 1 new or changed task' }).waitFor();
    expect(await page.getByRole('link', { name: other }).count()).toBe(0);
    await page.mouse.move(0, 0);
    await page.getByRole('link', { name: other }).waitFor();
  });

  nightlyIt('say which state of their address there is not', async () => {
    const page = await open('/tasks?state=broken');
    await page.getByText('A filter of the address is not known').waitFor();
    await page.getByText('state: broken').waitFor();
    await baton.expectAccessible(page);
    await page.goto('/console/tasks?state=TASK_STATE_FAILED');
    await page.getByText('No task is like this').waitFor();
    const chosen = page.getByRole('navigation', { name: 'States of tasks' }).locator('[aria-current]');
    expect(await chosen.innerText()).toMatch(/^failed/);
  });

  it('show who changed what, to tokens that may read the audit log', async () => {
    await create('tokens', { name: 'for the audit log' });
    const page = await open('/audit');
    await page.getByRole('table', { name: 'Audit log' }).getByText('token.create').first().waitFor();
    await baton.expectAccessible(page);
    const token = await baton.stack.createToken(tenant.slug, 'agents:call');
    const theirs = await baton.open({ token, path: '/audit' });
    await theirs.getByText(`--tenant ${tenant.slug} --scopes audit:read`).waitFor();
    expect(await theirs.getByRole('link', { name: 'Audit log' }).count()).toBe(0);
  });

  nightlyIt('show what has become of the last tasks of a schedule', async () => {
    await create('schedules', {
      name: 'broken-one',
      agent: 'echo',
      message: { parts: [{ text: 'hi' }], metadata: { echo: { fail: 'failed' } } },
      cron: '0 3 * * *',
      time_zone: 'UTC',
    });
    const page = await open('/schedules');
    await page.getByRole('button', { name: 'Run broken-one now' }).click();
    const row = page.getByRole('row').filter({ hasText: 'broken-one' });
    await row.getByText('made a task').waitFor();
    await row.getByRole('link', { name: 'failed', exact: true }).waitFor();
    await baton.expectAccessibleInBothSchemes(page);
    await page.getByRole('button', { name: 'Run broken-one now' }).click();
    const marks = row.getByRole('link', { name: /^failed, / });
    await marks.nth(1).waitFor();
    await marks.first().click();
    await page.getByRole('row', { name: 'State failed' }).waitFor();
  });
});

/** Completed tasks of a tenant, the newest an hour old. */
async function fill(databaseUrl: string, slug: string, tasks: number): Promise<void> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await client.query(`SET baton.tenant = 'system'`);
    await client.query(
      `INSERT INTO tasks (tenant_id, id, agent_id, context_id, context_key, state, status, status_at, last_sequence,
         artifacts_sequence, owner, created_at)
       SELECT t.id, gen_random_uuid(), 'echo', 'context-' || i, md5('context-' || i)::uuid, 3,
         json_build_object('state', 'TASK_STATE_COMPLETED',
           'timestamp', to_char((now() - (3600 + i) * interval '1 second') AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.MS"Z"')),
         now() - (3600 + i) * interval '1 second', 0, 0, 'token:filled', now() - (3600 + i) * interval '1 second'
       FROM tenants t, generate_series(1, $2::int) i WHERE t.slug = $1`,
      [slug, tasks],
    );
  } finally {
    await client.end();
  }
}
