import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import type { Page } from 'playwright-core';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import type { TestTenant } from '../support/stack.js';

describeConsole('agents in the console', () => {
  const agents = mkdtempSync(join(tmpdir(), 'baton-console-agents-'));
  const startConsole = ConsoleStack.share({ BATON_AGENTS_DIR: agents });
  let baton: ConsoleStack;
  let tenant: TestTenant;

  beforeAll(async () => {
    mkdirSync(join(agents, 'broken'));
    writeFileSync(join(agents, 'broken/agent.yaml'), 'name: B\ndescription: Breaks.\nruntime: executor\n');
    writeFileSync(join(agents, 'broken/index.mjs'), '\n\nthrow new Error("no key");\n');
    baton = await startConsole();
    tenant = await baton.stack.createTenant();
    await put({ description: 'First words' });
    await put({ description: 'Second words' });
  });
  afterEach(() => baton.expectNoFaults());
  afterAll(() => rmSync(agents, { recursive: true }));

  const asTenant = (path: string, init: RequestInit = {}): Promise<Response> =>
    fetch(`${baton.url}/v1/agents${path}`, {
      ...init,
      headers: { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' },
    });
  async function put(change: object): Promise<void> {
    const extended = { description: 'For callers with a token' };
    const body = JSON.stringify({ name: 'Mine', description: 'd', runtime: 'echo', extended, ...change });
    expect((await asTenant('/mine', { method: 'PUT', body })).ok).toBe(true);
  }
  const stored = async (): Promise<Record<string, unknown>> =>
    (await (await asTenant('/mine')).json()) as Record<string, unknown>;

  /** Replaces the text of the editor, as a person does. */
  async function write(page: Page, text: string): Promise<void> {
    const editor = page.getByRole('textbox', { name: 'Definition of the agent' });
    await editor.click();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.press('Backspace');
    // Typed text would be indented by the editor.
    await page.keyboard.insertText(text);
  }

  it('are listed, with those that could not be loaded and why', async () => {
    const page = await baton.open({ token: tenant.token, path: '/agents' });
    const table = page.getByRole('table', { name: 'Agents' });
    await table.getByRole('row', { name: /^mine Mine echo catalog 2 enabled 0 – – – –$/ }).waitFor();
    await table.getByRole('row', { name: /^echo .* builtin – enabled / }).waitFor();
    const failures = page.getByRole('alert');
    expect(await failures.innerText()).toMatch(/broken\s+broken\/index\.mjs:3\s+could not be loaded: no key/);
    await baton.expectAccessible(page);
  });

  nightlyIt('are cards on a telephone, and still rows of a table', async () => {
    const context = { viewport: { width: 390, height: 800 } };
    const page = await baton.open({ token: tenant.token, path: '/agents', context });
    const table = page.getByRole('table', { name: 'Agents' });
    await table.getByRole('row').filter({ hasText: 'Mine' }).getByRole('cell').first().waitFor();
    expect(await baton.widthOf(page)).toBeLessThanOrEqual(390);
    const wider = await page
      .getByRole('region', { name: 'Agents' })
      .evaluate((it: { scrollWidth: number; clientWidth: number }) => it.scrollWidth - it.clientWidth);
    expect(wider).toBe(0);
    await baton.expectAccessible(page);
  });

  nightlyIt('are listed with how they were used in the last week', async () => {
    const caller = new RawCaller(`${baton.url}/agents/mine`, tenant.token);
    for (const echo of [{}, {}, {}, { fail: 'failed' }])
      await caller.call('SendMessage', sendParams('Hello', { metadata: { echo } }));
    const page = await baton.open({ token: tenant.token, path: '/agents' });
    const row = page.getByRole('table', { name: 'Agents' }).getByRole('row', { name: /^mine / });
    await row.getByText('25% (1 of 4)').waitFor();
    const cells = await row.getByRole('cell').allInnerTexts();
    expect(cells.slice(5)).toEqual([
      '0.6',
      '25% (1 of 4)',
      expect.stringMatching(/^\d.* m?s$/),
      '–',
      expect.stringMatching(/\d/),
    ]);
    await baton.expectAccessibleInBothSchemes(page);
  });

  it('show their definition, and their card as others see it', async () => {
    const page = await baton.open({ token: tenant.token, path: '/agents/mine' });
    await page.getByLabel('Definition of mine').getByText('Second words').waitFor();
    await baton.expectAccessible(page);
    await page.getByRole('tab', { name: 'Card' }).click();
    const card = page.getByLabel('Card of mine');
    await card.getByText('supportedInterfaces').waitFor();
    await page.getByRole('status').getByText('The card is not signed.').waitFor();
    await page.getByText('0.3', { exact: true }).click();
    await card.getByText('preferredTransport').waitFor();
    await page.getByText('Callers with a token').click();
    await card.getByText('For callers with a token').waitFor();
    await baton.expectAccessible(page);
    await page.getByRole('tab', { name: 'Use it from…' }).click();
    await page.getByLabel('Use mine from Claude Code').getByText('claude mcp add').waitFor();
    await page.getByText('VS Code', { exact: true }).click();
    await page.getByLabel('Use mine from VS Code').getByText('/agents/mine/mcp').waitFor();
    await baton.expectAccessible(page);
  });

  it('are changed with faults marked at their lines, tried, and saved', async () => {
    // The dry run that is refused.
    baton.expectFaults(/400/);
    const page = await baton.open({ token: tenant.token, path: '/agents/mine/edit' });
    const problems = page.getByRole('status', { name: 'Problems' });
    await problems.getByText('No problems found.').waitFor();
    await write(page, 'slug: mine\nname: Mine\ndescription: d\nruntime: echo\nconfg: {}\n');
    await problems.getByText('Line 5').waitFor();
    await problems.getByText('confg: is not known').waitFor();
    // Each fault once.
    expect(await problems.getByRole('listitem').count()).toBe(1);
    await page.locator('.cm-lintRange-error').getByText('confg').waitFor();
    await baton.picture(page, 'agent-editor');
    await write(page, 'slug: mine\nname: [');
    await problems
      .getByText(/^Line \d/)
      .first()
      .waitFor();
    // The schema allows any tags; the server checks more.
    await write(page, 'slug: other\nname: Mine\ndescription: Third words\nruntime: echo\n');
    await problems.getByText('No problems found.').waitFor();
    await page.getByRole('button', { name: 'Dry run' }).click();
    await problems.getByText(/slug: is "mine" and cannot change/).waitFor();
    await problems.getByText('Line 1').waitFor();
    await page.getByRole('alert').getByText('Mend the problems above').waitFor();
    expect(await page.getByText(/cannot change/).count()).toBe(1);
    await baton.expectAccessible(page);
    await write(page, 'slug: mine\nname: Mine\ndescription: Third words\nruntime: echo\n');
    await page.getByRole('button', { name: 'Dry run' }).click();
    await page.getByText('The agent would be changed. Nothing was written.').waitFor();
    expect(await stored()).toMatchObject({ version: 2 });
    await page.getByRole('button', { name: 'Save' }).click();
    await page.getByText('Version 3', { exact: true }).waitFor();
    expect(await stored()).toMatchObject({ version: 3, definition: { description: 'Third words' } });
  });

  it('say before they are saved which secret they need', async () => {
    const page = await baton.open({ token: tenant.token, path: '/agents/new' });
    const problems = page.getByRole('status', { name: 'Problems' });
    await write(
      page,
      'name: Helper\ndescription: d\nruntime: llm\nconfig:\n  model: openai/gpt-5-mini\n  prompt: Be brief.\n',
    );
    await page.getByRole('button', { name: 'Dry run' }).click();
    await problems.getByText('there is no secret "openai"').waitFor();
    await problems.getByText('Line 5 (warning)').waitFor();
    await page.getByText('The agent would be created. Nothing was written.').waitFor();
  });

  nightlyIt('are checked against the tools of their MCP servers before they are saved', async () => {
    // The check that finds a fault.
    baton.expectFaults(/400/);
    const page = await baton.open({ token: tenant.token, path: '/agents/new' });
    const desk = 'tools:\n    mcp:\n      - name: desk\n        url: http://127.0.0.1:9/mcp\n';
    await write(
      page,
      `slug: clerk\nname: Clerk\ndescription: d\nruntime: llm\nconfig:\n  model: openai/m\n  ${desk}`,
    );
    await page.getByRole('button', { name: 'Check the tools' }).click();
    const problems = page.getByRole('status', { name: 'Problems' });
    await problems.getByText(/the MCP server "desk" cannot be used/).waitFor();
    await problems.getByText('Line 10').waitFor();
    await write(page, 'slug: clerk\nname: Clerk\ndescription: d\nruntime: llm\nconfig: {model: openai/m}\n');
    await page.getByRole('button', { name: 'Check the tools' }).click();
    await page.getByText('and have the tools that it names').waitFor();
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByRole('link', { name: 'Cancel' }).click();
    await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  });

  nightlyIt('offer the fields that the schema allows', async () => {
    const page = await baton.open({ token: tenant.token, path: '/agents/new' });
    await page.getByRole('textbox', { name: 'Definition of the agent' }).waitFor();
    await write(page, 'name: N\ndescription: d\nruntime: llm\nconfig:\n  temp');
    // The schema is there.
    await page
      .getByRole('status', { name: 'Problems' })
      .getByText(/^Line \d/)
      .first()
      .waitFor();
    await page.keyboard.press('Control+Space');
    await page.getByRole('option', { name: /^temperature/ }).waitFor();
    await page.keyboard.press('Escape');
    page.once('dialog', (dialog) => void dialog.accept());
    await page.getByRole('link', { name: 'Cancel' }).click();
    await page.getByRole('heading', { name: 'Agents', level: 1 }).waitFor();
  });

  it('go back to an earlier version, after a look at what changes', async () => {
    const page = await baton.open({ token: tenant.token, path: '/agents/mine?tab=versions' });
    const difference = page.getByLabel('What changed from version 2 to version 3');
    await difference.getByText('Third words').waitFor();
    await difference.getByText('Second words').waitFor();
    await baton.expectAccessible(page);
    // The name of its token, and a time with its zone.
    const versions = page.getByRole('table', { name: 'Versions' });
    await versions.getByRole('cell', { name: 'test', exact: true }).first().waitFor();
    expect(await versions.getByRole('time').first().innerText()).toMatch(/GMT|UTC/);
    await page.getByRole('button', { name: 'Restore version 1' }).click();
    const dialog = page.getByRole('dialog');
    await dialog.getByText('First words').waitFor();
    await baton.expectAccessible(page);
    await dialog.getByRole('button', { name: 'Restore version 1' }).click();
    await page.getByText('Version 4', { exact: true }).waitFor();
    expect(await stored()).toMatchObject({ version: 4, definition: { description: 'First words' } });
  });

  nightlyIt('show the version that gets a share of new tasks, and promote it', async () => {
    const next = { share: 20, version: 1 };
    await asTenant('/mine/next', { method: 'PUT', body: JSON.stringify(next) });
    const page = await baton.open({ token: tenant.token, path: '/agents/mine' });
    await page.getByText('Version 1 gets 20 % of new tasks').waitFor();
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: 'Promote mine' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Promote' }).click();
    await page.getByText('Version 5', { exact: true }).waitFor();
    expect(await page.getByText('of new tasks').count()).toBe(0);
    expect(await stored()).toMatchObject({ version: 5 });
  });

  it('are disabled and enabled', async () => {
    const page = await baton.open({ token: tenant.token, path: '/agents/mine' });
    await page.getByRole('button', { name: 'Disable mine' }).click();
    await page.getByRole('dialog').getByText('It takes no new messages').waitFor();
    await baton.expectAccessible(page);
    await page.getByRole('dialog').getByRole('button', { name: 'Disable' }).click();
    await page.getByRole('button', { name: 'Enable' }).waitFor();
    expect(await stored()).toMatchObject({ enabled: false });
    await page.getByRole('button', { name: 'Enable' }).click();
    await page.getByRole('button', { name: 'Disable' }).waitFor();
    expect(await stored()).toMatchObject({ enabled: true });
  });

  it('cannot be changed with a token that may only read them', async () => {
    const token = await baton.stack.createToken(tenant.slug, 'agents:read');
    const page = await baton.open({ token, path: '/agents' });
    await page.getByRole('table', { name: 'Agents' }).getByRole('link', { name: 'mine' }).click();
    await page.getByLabel('Definition of mine').getByText('First words').waitFor();
    for (const name of ['Edit', 'Try it']) expect(await page.getByRole('link', { name }).count()).toBe(0);
    expect(await page.getByRole('button', { name: 'Disable' }).count()).toBe(0);
    await page.getByRole('tab', { name: 'Versions' }).click();
    await page.getByRole('table', { name: 'Versions' }).waitFor();
    expect(await page.getByRole('button', { name: /^Restore/ }).count()).toBe(0);
    expect(await page.getByRole('button', { name: /^Delete/ }).count()).toBe(0);
  });

  it('are deleted after a question', async () => {
    const page = await baton.open({ token: tenant.token, path: '/agents/mine' });
    await page.getByRole('button', { name: 'Delete mine' }).click();
    await page.getByRole('dialog').getByRole('button', { name: 'Delete' }).click();
    await page.waitForURL(/\/console\/agents$/);
    await page.getByRole('table', { name: 'Agents' }).getByRole('link', { name: 'echo' }).waitFor();
    expect(await page.getByRole('link', { name: 'mine' }).count()).toBe(0);
  });
});
