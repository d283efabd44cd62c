import type { Page } from 'playwright-core';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import type { TestTenant } from '../support/stack.js';

describeConsole('a prompt that is being written in the console', () => {
  const startConsole = ConsoleStack.share({ ...CRASH_SETTINGS, OUTBOUND_ALLOW: '127.0.0.1' });
  let baton: ConsoleStack;
  let tenant: TestTenant;
  let provider: ModelProvider;

  beforeAll(async () => {
    provider = await ModelProvider.start();
    // It says its prompt.
    provider.answer(({ body }) => {
      const { messages } = body as { messages: { content: string }[] };
      return { text: messages[0]?.content ?? '', usage: { input: 12, output: 3 } };
    });
    baton = await startConsole();
    tenant = await baton.stack.createTenant();
    await ask('PUT', '/v1/agents/clerk', clerk('Be very polite today.'));
  });
  afterEach(() => baton.expectNoFaults());
  afterAll(() => provider.stop());

  const clerk = (prompt: string): object => ({
    name: 'Clerk',
    description: 'Answers.',
    runtime: 'llm',
    config: { model: 'openai-compatible/clerk-1', baseUrl: provider.url, prompt },
  });

  /** What another author does. */
  const ask = async (method: string, path: string, body?: object): Promise<Record<string, unknown>> => {
    const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
    const response = await fetch(`${baton.url}${path}`, {
      method,
      headers: body ? headers : { authorization: headers.authorization },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    expect([response.ok, text]).toEqual([true, text]);
    return text === '' ? {} : (JSON.parse(text) as Record<string, unknown>);
  };
  const nextOf = async (slug: string): Promise<unknown> => (await ask('GET', `/v1/agents/${slug}`)).next;

  /** A page with an agent in the editor and this prompt in place of the stored one. */
  const edit = async (slug: string, prompt: string): Promise<Page> => {
    await ask('PUT', `/v1/agents/${slug}`, clerk('Be very polite today.'));
    const page = await baton.open({ token: tenant.token, path: `/agents/${slug}` });
    await page.getByRole('link', { name: 'Edit' }).click();
    await writePrompt(page, slug, prompt);
    return page;
  };
  const writePrompt = async (page: Page, slug: string, prompt: string): Promise<void> => {
    await page.getByRole('textbox', { name: 'Definition of the agent' }).click();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.press('Backspace');
    await page.keyboard.insertText(
      `slug: ${slug}\nname: Clerk\ndescription: Answers.\nruntime: llm\nconfig:\n  model: openai-compatible/clerk-1\n` +
        `  baseUrl: ${provider.url}\n  prompt: ${prompt}\n`,
    );
  };
  const runBoth = (page: Page): Promise<void> =>
    page.getByRole('button', { name: 'Run both versions' }).click();
  const save = (page: Page): Promise<void> => page.getByRole('button', { name: 'Save', exact: true }).click();

  const answerToOthers = async (): Promise<unknown> => {
    const caller = new RawCaller(`${baton.url}/agents/clerk`, tenant.token);
    const { result } = await caller.call('SendMessage', sendParams('Hello'));
    const { status, artifacts } = result?.task as {
      status: { message?: { parts: { text: string }[] } };
      artifacts?: { parts: { text: string }[] }[];
    };
    return (status.message ?? artifacts?.[0])?.parts[0]?.text;
  };

  it('answers beside the stored one, with the difference in words, and no other caller gets it', async () => {
    const page = await baton.open({ token: tenant.token, path: '/agents/clerk' });
    // Two clicks after the text: edit it, run both.
    await page.getByRole('link', { name: 'Edit' }).click();
    await writePrompt(page, 'clerk', 'Be very brief today.');
    await runBoth(page);
    const output = page.getByRole('table', { name: 'Comparison' }).getByRole('row', { name: /^Output/ });
    await output.getByRole('deletion').getByText('polite').waitFor();
    await output.getByRole('insertion').getByText('brief').waitFor();
    await page.getByRole('row', { name: /^Input tokens 12 12/ }).waitFor();
    await page.getByRole('link', { name: 'Trace of the written version' }).waitFor();
    await baton.expectAccessibleInBothSchemes(page);
    expect(await answerToOthers()).toBe('Be very polite today.');

    await save(page);
    await page.waitForURL(/\/agents\/clerk$/);
    expect(await answerToOthers()).toBe('Be very brief today.');
    // What was tried is gone.
    expect(await page.getByText('is being tried').count()).toBe(0);
  });

  nightlyIt('does not end what a colleague has given to callers meanwhile', async () => {
    const page = await edit('shared', 'Be very brief today.');
    await runBoth(page);
    await page.getByRole('table', { name: 'Comparison' }).waitFor();
    const { next } = await ask('PUT', '/v1/agents/shared/next', {
      share: 20,
      agent: clerk('Be very kind today.'),
    });
    baton.expectFaults(/409/);
    await runBoth(page);
    await page
      .getByRole('alert')
      .filter({ hasText: 'version 3 of "shared" has the label "next" and 20 % of new tasks' })
      .waitFor();
    await save(page);
    await page.waitForURL(/\/agents\/shared$/);
    expect(await nextOf('shared')).toEqual(next);
  });

  nightlyIt('does not end the try of a colleague, nor what the tried version has got since', async () => {
    const page = await edit('given', 'Be very brief today.');
    await runBoth(page);
    await page.getByRole('table', { name: 'Comparison' }).waitFor();
    const { next } = await ask('PUT', '/v1/agents/given/next', { share: 30 });
    expect(next).toMatchObject({ version: 2, share: 30 });
    baton.expectFaults(/409/);
    await save(page);
    await page.waitForURL(/\/agents\/given$/);
    expect(await nextOf('given')).toEqual(next);
  });

  nightlyIt('shows when another version has answered', async () => {
    const page = await edit('raced', 'Be very brief today.');
    await baton.stack.killWorkers();
    await runBoth(page);
    await page.getByRole('link', { name: 'Trace of the written version' }).waitFor();
    await ask('PUT', '/v1/agents/raced/next', { share: 0, agent: clerk('Be very kind today.') });
    await baton.stack.addWorker();
    const alert = page.getByRole('alert').filter({ hasText: 'The written version has not answered' });
    await alert.getByText('It is version 2. Version 3 has answered').waitFor();
    expect(await page.getByText('The stored version has not answered').count()).toBe(0);
    await baton.expectAccessible(page);
  });

  nightlyIt(
    'says what is saved and what is not when the try cannot be withdrawn, and tries it again',
    async () => {
      const page = await edit('saved', 'Be very brief today.');
      await runBoth(page);
      await page.getByRole('table', { name: 'Comparison' }).waitFor();
      baton.expectFaults(/503/);
      const failing = '**/v1/agents/saved/next?*';
      await page.route(failing, (route) =>
        route.fulfill({ status: 503, json: { error: { message: 'Not now.' } } }),
      );
      await save(page);
      const alert = page
        .getByRole('alert')
        .filter({ hasText: 'Version 3 is saved, but version 2 is still being tried' });
      await alert.getByText('Not now.').waitFor();
      expect(await page.getByText('It was not accepted').count()).toBe(0);
      await baton.expectAccessible(page);
      expect(await nextOf('saved')).toMatchObject({ version: 2 });
      await page.unroute(failing);
      await alert.getByRole('button', { name: 'Try again' }).click();
      await page.waitForURL(/\/agents\/saved$/);
      expect(await nextOf('saved')).toBeUndefined();
    },
  );
});
