import { execFileSync } from 'node:child_process';
import type { Page } from 'playwright-core';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { Hold, times } from '../support/hold.js';
import { nightlyIt } from '../support/nightly.js';
import type { TestTenant } from '../support/stack.js';

/** Chunks of the answer that is cut. */
const CHUNKS = 30;

/**
 * Runs in the page: the connection of the first answer breaks after its fourth frame, as when the server stops, and all later ones
 * fail until `mend()`.
 */
const BREAK_AT_THE_FOURTH = `(() => {
  const send = window.fetch;
  let isDown = false;
  window.mend = () => { isDown = false; };
  window.fetch = async (input, init) => {
    if (isDown) throw new TypeError('Failed to fetch');
    const response = await send(input, init);
    if (!response.headers.get('content-type')?.includes('event-stream') || window.hasBroken) return response;
    window.hasBroken = true;
    const reader = response.body.getReader();
    let text = '';
    const body = new ReadableStream({
      async pull(controller) {
        const { value } = await reader.read();
        text += new TextDecoder().decode(value);
        if (/^id: ?4$/m.test(text)) {
          isDown = true;
          controller.error(new TypeError('network error'));
        } else controller.enqueue(value);
      },
    });
    return new Response(body, { status: response.status, headers: response.headers });
  };
})()`;

describeConsole('the playground', () => {
  let tenant: TestTenant;
  const hold = new Hold();
  const startConsole = ConsoleStack.share(hold.env);
  let baton: ConsoleStack;
  beforeAll(async () => {
    baton = await startConsole();
    tenant = await baton.stack.createTenant();
  });
  afterEach(() => baton.expectNoFaults());
  afterAll(() => hold.remove());

  const openPlain = async (agent = 'echo'): Promise<Page> => {
    const page = await baton.open({ token: tenant.token, path: `/playground?agent=${agent}` });
    await page.getByLabel('Text', { exact: true }).waitFor();
    return page;
  };
  /** The page with all options, and the frames. */
  const open = async (agent = 'echo'): Promise<Page> => {
    const page = await openPlain(agent);
    await page.getByRole('button', { name: 'Options' }).click();
    await page.getByRole('tab', { name: /^Frames/ }).click();
    return page;
  };
  const choose = (page: Page, label: string): Promise<void> => page.getByText(label, { exact: true }).click();
  const send = (page: Page): Promise<void> => page.getByRole('button', { name: 'Send' }).click();
  const ended = (page: Page): Promise<void> => page.getByText(/The answer has ended/).waitFor();
  const frames = (page: Page): Promise<(string | null)[]> =>
    page
      .getByRole('list', { name: 'Frames' })
      .locator('li')
      .evaluateAll((items) => items.map((item) => item.getAttribute('data-event-id')));
  const stored = (page: Page): Promise<string> => page.evaluate('JSON.stringify(localStorage)');
  const upTo = (count: number): string[] => Array.from({ length: count }, (_, i) => String(i + 1));

  it.each([
    ['1.0', 'JSON-RPC', '"method":"SendStreamingMessage"', 'a2a-version: 1.0'],
    ['1.0', 'HTTP+JSON', 'POST http', '/message:stream'],
    ['0.3', 'JSON-RPC', '"method":"message/stream"', '"kind":"text"'],
    ['0.3', 'HTTP+JSON', 'POST http', '/v1/message:stream'],
  ])('streams over A2A %s and %s, with the raw frames and headers', async (version, binding, ...sent) => {
    const page = await open();
    await choose(page, version);
    await choose(page, binding);
    await page.getByLabel('Text', { exact: true }).fill(`over ${binding}`);
    // It is visible without scrolling.
    const button = await page.getByRole('button', { name: 'Send' }).boundingBox();
    expect((button?.y ?? Infinity) + (button?.height ?? 0)).toBeLessThan(page.viewportSize()?.height ?? 0);
    await send(page);
    await ended(page);
    await page.getByText('Task: completed.').waitFor();
    await page.getByRole('region', { name: 'Answer of the agent' }).getByText(`over ${binding}`).waitFor();
    expect(await frames(page)).toEqual(upTo(4));
    expect(await baton.widthOf(page)).toBe(page.viewportSize()?.width);
    await page.getByRole('tab', { name: 'Headers' }).click();
    const wire = await page.getByRole('tabpanel').innerText();
    for (const text of [...sent, 'content-type: text/event-stream'])
      expect(wire.toLowerCase()).toContain(text.toLowerCase());
    expect(wire).not.toContain(tenant.token);
  });

  it('is a conversation with the trace of its last task beside it', async () => {
    const page = await openPlain();
    const say = async (text: string): Promise<void> => {
      await page.getByLabel('Text', { exact: true }).fill(text);
      await send(page);
      await page
        .getByRole('region', { name: 'Answer of the agent' })
        .getByText(text, { exact: true })
        .waitFor();
      await ended(page);
    };
    await say('the first question');
    await page.getByRole('list', { name: 'Trace of the task' }).getByText('attempt').first().waitFor();
    const task = page.getByRole('link', { name: 'Open the task' });
    const first = await task.getAttribute('href');
    await say('the second question');
    const earlier = page.getByRole('region', { name: 'Earlier in this conversation' });
    expect(await earlier.getByText('the first question').count()).toBe(2);
    expect(await task.getAttribute('href')).not.toBe(first);
    await page.getByRole('tab', { name: 'Headers' }).click();
    expect(await page.getByRole('tabpanel').innerText()).toContain('"contextId"');
    await baton.expectAccessible(page);
    await page.getByRole('tab', { name: 'Trace' }).click();
    await baton.picture(page, 'playground');
    await page.getByRole('tab', { name: 'Headers' }).click();
    await page.getByRole('button', { name: 'New conversation' }).click();
    await say('the third question');
    expect(await earlier.count()).toBe(0);
    expect(await page.getByRole('tabpanel').innerText()).not.toContain('"contextId"');
  });

  it('sends files, data and metadata, and waits for the answer without a stream', async () => {
    const page = await open();
    await page.getByRole('switch', { name: 'Stream' }).click();
    await page.getByLabel('Data (JSON)').fill('{"n": [1,');
    await page.getByText('Must be JSON').waitFor();
    expect(await page.getByRole('button', { name: 'Send' }).isDisabled()).toBe(true);
    await page.getByLabel('Data (JSON)').fill('{"n": [1, 2]}');
    await page.locator('input[type=file]').setInputFiles({
      name: 'note.txt',
      mimeType: 'text/plain',
      buffer: Buffer.from('four'),
    });
    await page.getByRole('button', { name: 'Remove note.txt' }).waitFor();
    await page.getByLabel('Metadata of the message (JSON)').fill('{"echo": {"askInput": true}}');
    await send(page);
    await ended(page);
    await page.getByText('Task: input-required.').waitFor();
    await page.getByRole('button', { name: 'Continue this task' }).click();
    await page.getByLabel('Metadata of the message (JSON)').fill('');
    await send(page);
    await page.getByText('Task: completed.').waitFor();
    const answer = await page.getByRole('tabpanel').innerText();
    expect(answer).toContain('"n":[1,2]');
    expect(answer).toContain(Buffer.from('four').toString('base64'));
    expect(answer).toContain('note.txt');
    await baton.expectAccessible(page);
  });

  it.each([
    ['1.0', 'JSON-RPC'],
    ['0.3', 'HTTP+JSON'],
  ])('resumes after a cut, over A2A %s and %s, without a lost or doubled frame', async (version, binding) => {
    hold.hold();
    const page = await open('pacer');
    await choose(page, version);
    await choose(page, binding);
    await page.getByLabel('Text', { exact: true }).fill(times(CHUNKS, 'hello'));
    await send(page);
    // The agent stops behind its first chunk: no more comes before the cut.
    await page.locator('[data-event-id="3"]').waitFor();
    await page.getByRole('button', { name: 'Cut the connection' }).click();
    await page.getByText(/The connection is cut/).waitFor();
    const before = await frames(page);
    expect(before).toEqual(upTo(3));
    hold.release();
    await page.getByRole('button', { name: 'Resume' }).click();
    await ended(page);
    await page.getByText('Task: completed.').waitFor();
    // Submitted, working, the chunks, completed.
    expect(await frames(page)).toEqual(upTo(CHUNKS + 3));
    await page.getByRole('tab', { name: 'Headers' }).click();
    expect(await page.getByRole('tabpanel').innerText()).toContain(`last-event-id: ${before.at(-1)}`);
    await page.getByRole('tab', { name: 'Events of the SDK' }).click();
    const events = (await page.getByRole('tabpanel').innerText()).split('\n');
    expect(events.filter((event) => event.includes('"artifactUpdate"'))).toHaveLength(CHUNKS);
  });

  it('shows the answer as Markdown, leads to its task, and goes on only with a task that waits', async () => {
    const page = await open();
    await page.getByLabel('Text', { exact: true }).fill('# A title');
    await page.keyboard.press('Control+Enter');
    await ended(page);
    await page
      .getByRole('region', { name: 'Answer of the agent' })
      .getByRole('heading', { name: 'A title' })
      .waitFor();
    await page.getByText('Task: completed.').waitFor();
    expect(await page.getByRole('button', { name: 'Continue this task' }).count()).toBe(0);
    await baton.expectAccessible(page);
    await page.getByRole('link', { name: 'Open the task' }).click();
    await page.getByRole('row', { name: 'State completed' }).waitFor();
  });

  nightlyIt('shows all of a long answer, of which it keeps the last frames', async () => {
    const page = await open();
    await page.getByLabel('Text', { exact: true }).fill('piece ');
    await page.getByLabel('Metadata of the message (JSON)').fill('{"echo": {"chunks": 700}}');
    await send(page);
    await ended(page);
    await page.getByText('The last 500 of 703 frames:').waitFor();
    const answer = await page.getByRole('region', { name: 'Answer of the agent' }).innerText();
    expect(answer.split('piece').length - 1).toBe(700);
  });

  nightlyIt('keeps what was written when the page is left, until its writer signs out', async () => {
    const page = await open();
    await page.getByLabel('Text', { exact: true }).fill('half a sen');
    await page.getByRole('combobox', { name: 'Agent' }).click();
    await page.getByRole('option', { name: 'index' }).click();
    await page.getByRole('navigation').getByRole('link', { name: 'Tasks' }).click();
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    await page.getByRole('navigation').getByRole('link', { name: 'Playground' }).click();
    expect(await page.getByLabel('Text', { exact: true }).inputValue()).toBe('half a sen');
    expect(await page.getByRole('combobox', { name: 'Agent' }).inputValue()).toBe('index');
    await page.getByRole('button', { name: /^test/ }).click();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Baton' }).waitFor();
    expect(await page.evaluate('JSON.stringify(sessionStorage)')).not.toContain('half a sen');
  });

  nightlyIt('resumes an answer by itself that the network has cut', async () => {
    baton.expectFaults(/Failed to load resource|ERR_INTERNET_DISCONNECTED|ERR_NETWORK_CHANGED/);
    const page = await open();
    // It continues for longer than the test needs, however slow the machine.
    const metadata = { echo: { chunks: 200, delayMs: 2_000 } };
    await page.getByLabel('Metadata of the message (JSON)').fill(JSON.stringify(metadata));
    await page.evaluate(BREAK_AT_THE_FOURTH);
    await send(page);
    await page.getByText(/The connection is lost/).waitFor();
    await page.evaluate('window.mend()');
    await page.locator('[data-event-id="6"]').waitFor();
    await page.getByText('The answer is coming in').waitFor();
    const shown = await frames(page);
    expect(shown).toEqual(upTo(shown.length));
    await page.getByRole('button', { name: 'Cancel the task' }).click();
    await page.getByText('Task: canceled.').waitFor();
  });

  it('gives the request as a command that works, without the token', async () => {
    const page = await open();
    await send(page);
    await ended(page);
    await page.getByRole('tab', { name: 'curl' }).click();
    const command = await page.getByLabel('The request as a command').innerText();
    expect(command).not.toContain(tenant.token);
    const env = { ...process.env, BATON_TOKEN: tenant.token };
    expect(execFileSync('sh', ['-c', command], { env, encoding: 'utf8', stdio: 'pipe' })).toContain(
      'TASK_STATE_COMPLETED',
    );
  });

  nightlyIt('keeps requests in this browser, and never the token', async () => {
    const page = await open();
    await page.getByLabel('Text', { exact: true }).fill('keep me');
    await page.getByLabel('Keep as').fill('my request');
    await page.getByRole('button', { name: 'Keep', exact: true }).click();
    expect(await stored(page)).not.toContain(tenant.token);
    await page.reload();
    await page.getByRole('button', { name: 'Options' }).click();
    await page.getByLabel('Kept requests').first().click();
    await page.getByRole('option', { name: 'my request' }).click();
    expect(await page.getByLabel('Text', { exact: true }).inputValue()).toBe('keep me');
    await page.getByRole('button', { name: 'Remove', exact: true }).click();
    expect(await stored(page)).not.toContain('keep me');
    await baton.expectAccessible(page);
  });
});
