/** What the test needs of an element in the page. */
interface Drawn {
  ownerDocument: { defaultView: { getComputedStyle(bar: Drawn): { fill: string } } };
}

import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Page } from 'playwright-core';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY } from '../support/shared-stack.js';
import type { TestTenant } from '../support/stack.js';

describeConsole('the first page of the console', () => {
  const startConsole = ConsoleStack.share({ OUTBOUND_ALLOW: '127.0.0.1', BATON_MASTER_KEY: MASTER_KEY });
  let baton: ConsoleStack;
  let tenant: TestTenant;
  let receiver: Server;
  beforeAll(async () => {
    baton = await startConsole();
    tenant = await baton.stack.createTenant('admin');
    receiver = createServer((_, response) => response.writeHead(500).end());
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  });
  afterEach(() => baton.expectNoFaults());
  afterAll(async () => {
    receiver.close();
  });

  const post = async (path: string, body: object): Promise<{ id: string }> => {
    const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
    const response = await fetch(`${baton.url}/v1/${path}`, {
      method: 'POST',
      headers,
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(await response.text());
    return (await response.json()) as { id: string };
  };
  const send = (echo: object) =>
    new RawCaller(baton.stack.url(0), tenant.token).call(
      'SendMessage',
      sendParams('Hello', { metadata: { echo } }),
    );
  const open = async (token = tenant.token): Promise<Page> => {
    const page = await baton.open({ token });
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    return page;
  };
  const section = (page: Page, name: string) => page.getByRole('region', { name });

  it('shows how to begin without tasks', async () => {
    const page = await open();
    await page.getByRole('heading', { name: 'No tasks in the last 14 days' }).waitFor();
    await section(page, 'Agents that fail').getByText('No task has failed').waitFor();
    await baton.expectAccessibleInBothSchemes(page);
  });

  it('shows tasks and failures by day, and what is in trouble, with ways to it', async () => {
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    await post('webhooks', { url, states: ['completed', 'failed'] });
    for (const echo of [{}, {}, {}, { fail: 'failed' }]) await send(echo);
    const message = { parts: [{ text: 'hi' }], metadata: { echo: { fail: 'failed' } } };
    const { id } = await post('schedules', { name: 'broken-one', agent: 'echo', message, cron: '0 3 * * *' });
    await post(`schedules/${id}/run`, {});
    const page = await open();
    const days = page.getByRole('list', { name: 'Tasks a day (UTC)' });
    // The run of the schedule ends by itself: the page reads the numbers again.
    await days.getByText(/: 5 tasks, 2 failed$/).waitFor();
    expect(await days.getByRole('listitem').count()).toBe(14);
    const bars = days.locator('li:last-child rect');
    const colours = await bars.evaluateAll((all: Drawn[]) =>
      all.map((bar) => bar.ownerDocument.defaultView.getComputedStyle(bar).fill),
    );
    expect(new Set(colours).size).toBe(3);
    expect(colours).not.toContain('rgb(0, 0, 0)');
    await section(page, 'Agents that fail').getByText('40% (2 of 5)').waitFor();
    await section(page, 'Schedules in trouble').getByText('1 of the last 1 tasks failed').waitFor();
    await section(page, 'Receivers in trouble')
      .getByText(/failing for \d of 5 tasks/)
      .waitFor();
    await baton.expectAccessibleInBothSchemes(page);
    await page.getByRole('link', { name: 'Failed tasks of echo' }).click();
    await page.waitForURL(/agent=echo/);
    expect(new URL(page.url()).searchParams.get('state')).toBe('failed');
    await page.goBack();
    // From the first page to all failures of the week: one click.
    await page.getByRole('link', { name: '40% (2 of 5)' }).click();
    await page.waitForURL(/\/tasks\?/);
    expect(new URL(page.url()).search).toBe('?state=failed&since=7d');
    await page.goBack();
    await section(page, 'Receivers in trouble').getByRole('link', { name: url }).click();
    await page.getByRole('heading', { name: 'Deliveries', level: 1 }).waitFor();
  });

  nightlyIt('is narrow on a telephone', async () => {
    const context = { viewport: { width: 390, height: 800 } };
    const page = await baton.open({ token: tenant.token, context });
    await page.getByRole('list', { name: 'Tasks a day (UTC)' }).waitFor();
    expect(await baton.widthOf(page)).toBeLessThanOrEqual(390);
  });

  it('leads a token without tasks to its first page, or shows that there is none', async () => {
    const page = await baton.open({ token: await baton.stack.createToken(tenant.slug, 'secrets:write') });
    await page.getByRole('heading', { name: 'Secrets', level: 1 }).waitFor();
    const none = await baton.open({ token: await baton.stack.createToken(tenant.slug, 'records:read') });
    await none.getByRole('heading', { name: 'Nothing to see with this token' }).waitFor();
  });
});
