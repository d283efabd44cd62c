import { ModelProvider } from '../support/model-provider/model-provider.js';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import type { TestTenant } from '../support/stack.js';

describeConsole('a prompt that is being written in the console', () => {
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
    baton = await ConsoleStack.start({ env: { OUTBOUND_ALLOW: '127.0.0.1' } });
    tenant = await baton.stack.createTenant();
    const agent = {
      name: 'Clerk',
      description: 'Answers.',
      runtime: 'llm',
      config: { model: 'openai-compatible/clerk-1', baseUrl: provider.url, prompt: 'Be very polite today.' },
    };
    const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
    const written = await fetch(`${baton.url}/v1/agents/clerk`, {
      method: 'PUT',
      headers,
      body: JSON.stringify(agent),
    });
    expect(written.ok).toBe(true);
  });
  afterEach(() => baton.expectNoFaults());
  afterAll(() => Promise.all([baton.stop(), provider.stop()]));

  const answerToOthers = async (): Promise<unknown> => {
    const caller = new RawCaller(`${baton.url}/agents/clerk`, tenant.token);
    const { result } = await caller.call('SendMessage', sendParams('Hello'));
    const { status, artifacts } = result?.task as {
      status: { message?: { parts: { text: string }[] } };
      artifacts?: { parts: { text: string }[] }[];
    };
    return (status.message ?? artifacts?.[0])?.parts[0]?.text;
  };

  it('answers beside the stored one, with the difference in words, and nobody else gets it', async () => {
    const page = await baton.open({ token: tenant.token, path: '/agents/clerk' });
    // Two clicks after the text: edit it, run both.
    await page.getByRole('link', { name: 'Edit' }).click();
    const editor = page.getByRole('textbox', { name: 'Definition of the agent' });
    await editor.click();
    await page.keyboard.press('ControlOrMeta+a');
    await page.keyboard.press('Backspace');
    await page.keyboard.insertText(
      `slug: clerk\nname: Clerk\ndescription: Answers.\nruntime: llm\nconfig:\n  model: openai-compatible/clerk-1\n` +
        `  baseUrl: ${provider.url}\n  prompt: Be very brief today.\n`,
    );
    await page.getByRole('button', { name: 'Run both versions' }).click();
    const output = page.getByRole('table', { name: 'Comparison' }).getByRole('row', { name: /^Output/ });
    await output.getByRole('deletion').getByText('polite').waitFor();
    await output.getByRole('insertion').getByText('brief').waitFor();
    await page.getByRole('row', { name: /^Input tokens 12 12/ }).waitFor();
    await page.getByRole('link', { name: 'Trace of the written version' }).waitFor();
    await baton.expectAccessibleInBothSchemes(page);
    expect(await answerToOthers()).toBe('Be very polite today.');

    await page.getByRole('button', { name: 'Save', exact: true }).click();
    await page.waitForURL(/\/agents\/clerk$/);
    expect(await answerToOthers()).toBe('Be very brief today.');
    // What was tried is gone.
    expect(await page.getByText('is being tried').count()).toBe(0);
  });
});
