import { Client } from 'pg';
import type { Page } from 'playwright-core';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { nightlyIt } from '../support/nightly.js';
import { pngImage } from '../support/png-image.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import type { TestTenant } from '../support/stack.js';

/** More events than the page keeps. */
const CHUNKS = 6_000;
/** As the page shows it: width to height. */
interface Image {
  naturalWidth: number;
  naturalHeight: number;
  clientWidth: number;
  clientHeight: number;
}

/** Resolves in the page when the number among the facts is that of the last event of the log, after some chunks. */
const COUNTED = `new Promise((resolve) => {
  const look = () => {
    const last = document.querySelector('[data-last-event]')?.getAttribute('data-last-event');
    const row = [...document.querySelectorAll('tr')].find((each) => each.innerText.startsWith('Events'));
    if (Number(last) <= 3 || !row?.innerText.endsWith(last)) return;
    observer.disconnect();
    resolve();
  };
  const observer = new MutationObserver(look);
  observer.observe(document.body, { attributes: true, characterData: true, childList: true, subtree: true });
  look();
})`;

describeConsole('the page of a task', () => {
  const startConsole = ConsoleStack.share();
  let baton: ConsoleStack;
  let tenant: TestTenant;
  let caller: RawCaller;
  beforeAll(async () => {
    baton = await startConsole();
    tenant = await baton.stack.createTenant();
    caller = new RawCaller(baton.stack.url(0), tenant.token);
  });
  afterEach(() => baton.expectNoFaults());

  const send = async (parts: object[], metadata: object = {}): Promise<string> => {
    const { message } = sendParams('');
    const { result } = await caller.call('SendMessage', { message: { ...message, parts, metadata } });
    return (result as { task: { id: string } }).task.id;
  };
  const open = async (id: string, tab = 'output'): Promise<Page> => {
    const page = await baton.open({ token: tenant.token, path: `/tasks/${id}?tab=${tab}` });
    await page.getByRole('table', { name: 'About the task' }).waitFor();
    return page;
  };
  const inDatabase = async (statement: string, taskId: string): Promise<void> => {
    const client = new Client({ connectionString: baton.stack.database.url });
    await client.connect();
    try {
      await client.query(`SET baton.tenant = 'system'`);
      await client.query(statement, [taskId]);
    } finally {
      await client.end();
    }
  };
  const entries = (page: Page) =>
    page.getByRole('list', { name: 'Events of the task' }).getByRole('listitem');

  it('shows a long answer from its beginning, the message of the caller, and how to send it again', async () => {
    const id = await send([{ text: 'begin and end. ' }], { echo: { chunks: CHUNKS } });
    const page = await open(id);
    await page.getByText('The task has ended.').waitFor();
    const artifact = page.getByRole('region', { name: 'Artifacts' });
    const text = await artifact.innerText();
    expect(text.split('begin and end.').length - 1).toBe(CHUNKS);
    await page.getByRole('tab', { name: 'Raw' }).click();
    await page.getByRole('heading', { name: 'Send it from a program' }).waitFor();
    await page.getByRole('tab', { name: 'Log' }).click();
    await page.getByText(/^\d+ events before these are not shown/).waitFor();
    const first = entries(page).first();
    await first.getByText('1 · Message of the caller').waitFor();
    await first.getByText('begin and end.').waitFor();
    // Submitted, working, the chunks, completed.
    await page.getByRole('row', { name: `Events ${CHUNKS + 3}` }).waitFor();
    await baton.expectAccessible(page);
  });

  nightlyIt('shows the end of a text that is too long for the page, and gives all of it', async () => {
    const piece = 'x'.repeat(9_999);
    const id = await send([{ text: `${piece}\n` }], { echo: { chunks: 60 } });
    const page = await open(id);
    await page.getByText('The task has ended.').waitFor();
    const artifact = page.getByRole('region', { name: 'Artifacts' });
    await artifact.getByText('These are the last 100,000 of 600,000 characters.').waitFor();
    await baton.expectAccessible(page);
    const [download] = await Promise.all([
      page.waitForEvent('download'),
      artifact.getByRole('button', { name: 'Download all of it' }).click(),
    ]);
    expect(download.suggestedFilename()).toMatch(/\.txt$/);
    await artifact.getByRole('button', { name: 'Show all of it' }).click();
    expect((await artifact.innerText()).replaceAll(/[^x]/g, '').length).toBeGreaterThanOrEqual(60 * 9_999);
  });

  it('shows why a task is parked, here and on the first page, and lets it go on', async () => {
    const id = await send([{ text: 'hi' }]);
    const parked = { reason: 'code-changed', problem: 'Step "check stock" is new', agent: 'echo', codes: [] };
    await inDatabase(
      `WITH run AS (
         UPDATE runs SET state = 'suspended', waits_for = ARRAY[id], finished_at = NULL, parked_at = now(),
           parked = '${JSON.stringify(parked)}'
         WHERE id = $1 RETURNING id
       ) UPDATE tasks SET state = 2, status = '{}', active_run_id = run.id FROM run WHERE tasks.id = run.id`,
      id,
    );
    const page = await open(id);
    const about = page.getByRole('table', { name: 'About the task' });
    await about.getByText('parked', { exact: true }).waitFor();
    await about.getByText('Step "check stock" is new').waitFor();
    await baton.expectAccessible(page);
    await page.getByRole('link', { name: 'Home' }).click();
    await page.getByRole('region', { name: 'Parked tasks' }).getByText('Step "check stock" is new').waitFor();
    await page.getByRole('region', { name: 'Parked tasks' }).getByRole('link', { name: 'echo' }).click();
    await page.getByRole('button', { name: 'Resume' }).click();
    await about.getByText('completed', { exact: true }).waitFor();
  });

  it('shows what a person has answered where it was answered', async () => {
    const id = await send([{ text: 'ask me' }], { echo: { askInput: true } });
    const page = await open(id, 'log');
    await page.getByLabel('Your answer').fill('to Zanzibar');
    await page.getByRole('button', { name: 'Send the answer' }).click();
    await page.getByText('The task has ended.').waitFor();
    const shown = async (): Promise<string[]> => {
      // The times come a moment after the events.
      const untimed = entries(page).filter({ hasNot: page.getByRole('time') });
      await untimed.first().waitFor({ state: 'detached' });
      return (await entries(page).allInnerTexts()).map(withoutTime);
    };
    const answer = entries(page).filter({ hasText: 'Message of the caller' }).nth(1);
    await answer.getByText('to Zanzibar').waitFor();
    const live = await shown();
    expect(live.findIndex((text) => text.includes('to Zanzibar'))).toBeLessThan(
      live.findIndex((text) => text.includes('Artifact')),
    );
    await page.reload();
    await page.getByText('The task has ended.').waitFor();
    await answer.getByText('to Zanzibar').waitFor();
    expect(await shown()).toEqual(live);
  });

  it('counts the events as they come in', async () => {
    const { message } = sendParams('count');
    const configuration = { returnImmediately: true };
    // It continues for longer than any test.
    const metadata = { echo: { chunks: 1_000, delayMs: 2_000 } };
    const { result } = await caller.call('SendMessage', { message: { ...message, metadata }, configuration });
    const { id } = (result as { task: { id: string } }).task;
    const page = await open(id);
    // The last of the log and the number say the same, long before the end.
    await page.evaluate(COUNTED);
    await page.getByRole('button', { name: 'Cancel the task' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('It cannot continue afterwards').waitFor();
    await baton.expectAccessible(page);
    await dialog.getByRole('button', { name: 'Keep it running' }).click();
    await dialog.waitFor({ state: 'detached' });
    await page.getByRole('button', { name: 'Cancel the task' }).click();
    await dialog.getByRole('button', { name: 'Cancel the task' }).click();
    await page.getByText('The task has ended.').waitFor();
    await page.getByRole('row', { name: 'State canceled' }).waitFor();
  });

  nightlyIt('has the same duration beside another task', async () => {
    const id = await send([{ text: 'ask me' }], { echo: { askInput: true } });
    const page = await open(id);
    await page.getByLabel('Your answer').fill('soon');
    await page.getByRole('button', { name: 'Send the answer' }).click();
    await page.getByText('The task has ended.').waitFor();
    const duration = await page
      .getByRole('row', { name: /^Duration/ })
      .getByRole('cell')
      .innerText();
    await page.goto(`/console/tasks/${id}/compare?with=${id}`);
    const cells = page
      .getByRole('row')
      .filter({ has: page.getByRole('rowheader', { name: 'Duration' }) })
      .getByRole('cell');
    await cells.nth(1).waitFor();
    expect(await cells.allInnerTexts()).toEqual([duration, duration]);
  });

  nightlyIt('shows an image in its proportions', async () => {
    const raw = pngImage(480, 240).toString('base64');
    const page = await open(await send([{ raw, mediaType: 'image/png', filename: 'wide.png' }]));
    await page.getByText('The task has ended.').waitFor();
    const image = page.getByRole('region', { name: 'Artifacts' }).getByRole('img', { name: 'wide.png' });
    await image.waitFor();
    const shown = await image.evaluate(async (it: Image & { decode: () => Promise<void> }) => {
      await it.decode();
      return [it.naturalWidth / it.naturalHeight, it.clientWidth / it.clientHeight];
    });
    expect(shown).toEqual([2, 2]);
  });

  nightlyIt('shows the console output of a failed agent once', async () => {
    const id = await send([{ text: 'with an error' }]);
    await inDatabase(
      `INSERT INTO console_lines (tenant_id, task_id, position, run_id, attempt, at, level, text, total_bytes)
       SELECT tenant_id, id, 1, gen_random_uuid(), 1, now(), 'error', 'the last words', 0 FROM tasks WHERE id = $1`,
      id,
    );
    const error = { attempt: 1, at: '2026-01-31T12:00:00.000Z', name: 'Error', message: 'no paper left' };
    await inDatabase(
      `UPDATE runs SET error_detail = '${JSON.stringify({ ...error, output: ['the last words'] })}' WHERE task_id = $1`,
      id,
    );
    const page = await open(id, 'log');
    await page.getByRole('region', { name: 'Error in the agent' }).getByText('no paper left').waitFor();
    await page.getByRole('table', { name: 'Console of the agent' }).getByText('the last words').waitFor();
    expect(await page.getByText('the last words').count()).toBe(1);
  });

  it('leads with what most people look for, and has the rest in tabs that are in the address', async () => {
    const id = await send([{ text: 'first things first' }]);
    const page = await baton.open({ token: tenant.token, path: `/tasks/${id}` });
    const about = page.getByRole('table', { name: 'About the task' });
    await about.getByRole('row', { name: 'Message first things first' }).waitFor();
    await about.getByRole('row', { name: 'State completed' }).waitFor();
    await about.getByRole('row', { name: /^Duration / }).waitFor();
    const tab = (name: string) => page.getByRole('tab', { name });
    const chosen = (name: string) => page.getByRole('tab', { name, selected: true });
    await chosen('Trace').waitFor();
    await page.getByRole('list', { name: 'Trace of the task' }).waitFor();
    // By the keyboard alone.
    await tab('Trace').focus();
    for (const key of ['ArrowRight', 'ArrowRight', 'Enter']) await page.keyboard.press(key);
    await chosen('Log').waitFor();
    expect(new URL(page.url()).searchParams.get('tab')).toBe('log');
    await page.getByRole('list', { name: 'Events of the task' }).waitFor();
    await baton.expectAccessible(page);
    await tab('Raw').click();
    await page.getByText('"TASK_STATE_COMPLETED"').first().waitFor();
    await baton.expectAccessible(page);
    await page.goBack();
    await chosen('Log').waitFor();
    await page.goBack();
    await chosen('Trace').waitFor();
    // The choice is kept for the next task.
    await tab('Output').click();
    await page.goto(`/console/tasks/${await send([{ text: 'another one' }])}`);
    await chosen('Output').waitFor();
    await page.getByRole('region', { name: 'Artifacts' }).getByText('another one').waitFor();
    // An address that names no tab of the page.
    await page.goto(`/console/tasks/${id}?tab=constructor`);
    await chosen('Output').waitFor();
  });

  it('shows why a task has failed in red', async () => {
    const id = await send([{ text: 'failing' }], { echo: { fail: 'failed' } });
    const page = await open(id);
    await page.getByRole('row', { name: /^Reason / }).waitFor();
    const colour = await page.evaluate<string>(
      `getComputedStyle([...document.querySelectorAll('tr')].find((row) => row.innerText.startsWith('Reason')).querySelector('td p')).color`,
    );
    const [red = 0, green = 0, blue = 0] = colour.match(/\d+/g)?.map(Number) ?? [];
    expect(red).toBeGreaterThan(2 * Math.max(green, blue));
  });

  nightlyIt('has names for the check boxes of a list of tasks', async () => {
    const page = await open(await send([{ text: '- [x] pack\n- [ ] leave\n' }]));
    await page.getByText('The task has ended.').waitFor();
    await page.getByRole('checkbox', { name: 'done', exact: true }).first().waitFor();
    await page.getByRole('checkbox', { name: 'not done' }).first().waitFor();
    await baton.expectAccessible(page);
  });
});

/** An entry of the log without its time, which a zone may write in its own way. */
const withoutTime = (text: string): string => text.split('\n')[0]! + text.split('\n').slice(2).join('\n');
