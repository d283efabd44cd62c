import { ConsoleStack, describeConsole } from '../support/console.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import type { TestTenant } from '../support/stack.js';

describeConsole('the page of operations on many tasks', () => {
  const startConsole = ConsoleStack.share();
  let baton: ConsoleStack;
  let tenant: TestTenant;
  beforeAll(async () => {
    baton = await startConsole();
    tenant = await baton.stack.createTenant('admin');
    const caller = new RawCaller(baton.stack.url(0), tenant.token);
    const texts = ['one', 'two', 'three'];
    const failing = texts.map((text) =>
      caller.call('SendMessage', sendParams(text, { metadata: { echo: { fail: true } } })),
    );
    await Promise.all([...failing, caller.call('SendMessage', sendParams('good'))]);
  });
  afterEach(() => baton.expectNoFaults());

  it('shows the tasks that match, begins after a question, and shows what came of it', async () => {
    const page = await baton.open({ token: tenant.token, path: '/tasks?state=failed' });
    await page.getByRole('link', { name: 'Change many' }).click();
    await page.getByRole('heading', { name: 'Bulk operations', level: 1 }).waitFor();
    await page.getByRole('heading', { name: 'No operations yet' }).waitFor();
    await page.getByLabel('Action').selectOption('delete');
    await page.getByRole('button', { name: 'Show the tasks' }).click();
    await page.getByText('3 tasks match').waitFor();
    const matching = page.getByRole('table', { name: 'Tasks that match' });
    for (const text of ['one', 'two', 'three']) await matching.getByText(text, { exact: true }).waitFor();
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: 'Delete ended tasks: 3' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete ended tasks: 3' }).click();
    const row = page.getByRole('table', { name: 'Operations' }).getByRole('row').nth(1);
    await row.getByText('done', { exact: true }).waitFor();
    expect((await row.getByRole('cell').allInnerTexts()).slice(0, 7)).toEqual([
      'Delete ended tasks',
      'state failed',
      'done',
      '3',
      '3',
      '0',
      '0',
    ]);
    await baton.expectAccessible(page);
    await page.getByRole('link', { name: 'Tasks', exact: true }).click();
    await page.getByText('1 tasks').waitFor();
  });
});
