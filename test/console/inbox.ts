import { join } from 'node:path';
import type { Locator, Page } from 'playwright-core';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { PATIENT, startMcpServer, type TestMcpServer } from '../support/mcp-server/mcp-server.js';
import { type ModernMcpServer, startModernServer } from '../support/mcp-server/modern-server.js';
import { textTool } from '../support/mcp-server/script.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import type { TestTenant } from '../support/stack.js';

const ASKING = { metadata: { echo: { askInput: true } } };
const FORM = {
  type: 'object',
  properties: {
    city: { type: 'string', title: 'City' },
    nights: { type: 'integer', title: 'Nights', minimum: 1 },
    pets: { type: 'boolean', title: 'With pets' },
    room: { type: 'string', title: 'Room', enum: ['single', 'double'] },
  },
  required: ['city'],
};

describeConsole('the inbox of the console', () => {
  const startConsole = ConsoleStack.share({
    OUTBOUND_ALLOW: '127.0.0.1',
    BATON_AGENTS_DIR: join(__dirname, '../agents'),
  });
  let baton: ConsoleStack;
  let tenant: TestTenant;
  let provider: ModelProvider;
  let tools: TestMcpServer;
  let clerk: ModernMcpServer;
  beforeAll(async () => {
    [baton, provider, tools, clerk] = await Promise.all([
      startConsole(),
      ModelProvider.start(),
      startMcpServer({ tools: [textTool('pay', 'paid')] }),
      startModernServer({
        tools: [{ name: 'report', call: () => clerk.newTask({ pollIntervalMs: 100 }) }],
      }),
    ]);
  });
  beforeEach(async () => {
    tools.calls.length = 0;
    provider.answer(({ body }) => {
      const messages = body.messages as { role: string; content: unknown }[];
      if (messages.some(({ role }) => role === 'tool')) return { text: 'done' };
      const euros = Number(/\d+/.exec(JSON.stringify(messages.at(-1)!.content))?.[0]);
      return { calls: [{ name: 'desk_pay', input: { euros } }] };
    });
    tenant = await baton.stack.createTenant();
    const mcp = [{ ...PATIENT, name: 'desk', url: tools.url, allow: ['pay'], approval: ['pay'] }];
    await createAgent('payer', { tools: { mcp }, approvals: { expires: '1h' } });
  });
  afterEach(() => baton.expectNoFaults());
  afterAll(async () => {
    await Promise.all([provider.stop(), tools.stop(), clerk.stop()]);
  });

  async function createAgent(slug: string, settings: object): Promise<void> {
    const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
    const config = {
      model: 'openai-compatible/m',
      baseUrl: provider.url,
      prompt: `You are ${slug}.`,
      ...settings,
    };
    const body = JSON.stringify({ name: slug, description: `The ${slug}`, runtime: 'llm', config });
    const made = await fetch(`${baton.url}/v1/agents/${slug}`, { method: 'PUT', headers, body });
    if (!made.ok) throw new Error(await made.text());
  }

  const send = async (agent: string, text: string, more: object = {}): Promise<string> => {
    const caller = new RawCaller(baton.stack.url(0, agent), tenant.token);
    const { result } = await caller.call('SendMessage', sendParams(text, more));
    return (result as { task: { id: string } }).task.id;
  };
  const open = (token = tenant.token): Promise<Page> => baton.open({ token, path: '/inbox' });
  const entry = (page: Page, id: string) =>
    page.getByRole('list', { name: 'Waiting for you' }).getByRole('listitem').filter({ hasText: id });
  const badge = (page: Page, count: number) =>
    page
      .getByRole('navigation', { name: 'Pages' })
      .getByRole('link', { name: `Inbox ${count}`, exact: true });
  /** Sees what was asked meanwhile without waiting for the next look. */
  const lookAgain = async (page: Page): Promise<void> => void (await page.reload());
  const taskOf = async (id: string): Promise<{ state: string; task: { history: { parts: object[] }[] } }> => {
    const headers = { authorization: `Bearer ${tenant.token}` };
    return (await fetch(`${baton.url}/v1/tasks/${id}`, { headers })).json() as never;
  };
  const ended = async (id: string): Promise<void> => {
    const page = await baton.open({ token: tenant.token, path: `/tasks/${id}` });
    await page.getByText('The task has ended.').waitFor();
    await page.close();
  };

  it('explains itself while nothing waits', async () => {
    const page = await open();
    await page.getByRole('heading', { name: 'Nothing waits for you' }).waitFor();
    await page.getByText('You see those of all tasks of the tenant.').waitFor();
    await baton.expectAccessible(page);
    expect(
      await page
        .getByRole('navigation', { name: 'Pages' })
        .getByRole('link', { name: /^Inbox/ })
        .innerText(),
    ).toBe('Inbox');
    const caller = await open(await baton.stack.createToken(tenant.slug, 'agents:call'));
    await caller.getByText('You see those of your own tasks').waitFor();
    await caller.getByText('tokens with the scope tasks:approve').waitFor();
  });

  it('has a question with what its task is about, is answered in place, and its badge follows', async () => {
    const [first, second] = [
      await send('echo', 'Book a room', ASKING),
      await send('echo', 'Book a car', ASKING),
    ];
    const page = await open();
    await badge(page, 2).waitFor();
    const entries = page.getByRole('list', { name: 'Waiting for you' }).getByRole('listitem');
    await entries.nth(1).waitFor();
    // The oldest is the first.
    expect(await entries.nth(0).innerText()).toContain(first);
    await entry(page, first).getByText('Its task: Book a room').waitFor();
    await baton.expectAccessibleInBothSchemes(page);
    await entry(page, first).getByLabel('Your answer').fill('with a view');
    await entry(page, first).getByRole('button', { name: 'Send the answer' }).click();
    await badge(page, 1).waitFor();
    expect(await entry(page, first).count()).toBe(0);
    await entry(page, second).waitFor();
    await ended(first);
    expect((await taskOf(first)).task.history.at(-1)).toMatchObject({ parts: [{ text: 'with a view' }] });
  });

  it('has calls with their exact input, approves one and refuses another with the reason', async () => {
    const [one, two] = [await send('payer', 'pay 100'), await send('payer', 'pay 4711')];
    const page = await open();
    await entry(page, one).getByText('"euros": 100').waitFor();
    await entry(page, one).getByText('Refused by itself at').waitFor();
    await entry(page, one).getByText('payer asks for approval').waitFor();
    await baton.expectAccessibleInBothSchemes(page);
    await entry(page, one).getByRole('button', { name: 'Approve desk_pay' }).click();
    await badge(page, 1).waitFor();
    await entry(page, two).getByLabel('Reason of a refusal').fill('Too much');
    await entry(page, two).getByRole('button', { name: 'Reject desk_pay' }).click();
    await page.getByRole('heading', { name: 'Nothing waits for you' }).waitFor();
    await Promise.all([ended(one), ended(two)]);
    expect(tools.calls).toMatchObject([{ tool: 'pay', input: { euros: 100 } }]);
    expect(JSON.stringify((await taskOf(two)).task)).toContain('Too much');
  });

  it('approves a call with the input that the person has changed', async () => {
    const id = await send('payer', 'pay 4711');
    const page = await open();
    await entry(page, id).getByRole('button', { name: 'Change the input' }).click();
    const input = entry(page, id).getByLabel('Input of desk_pay');
    await input.fill('{"euros":');
    await entry(page, id).getByText('This is not a JSON object').waitFor();
    await input.fill('{"euros": 47}');
    await baton.expectAccessibleInBothSchemes(page);
    await entry(page, id).getByRole('button', { name: 'Approve desk_pay with this input' }).click();
    await page.getByRole('heading', { name: 'Nothing waits for you' }).waitFor();
    await ended(id);
    expect(tools.calls).toMatchObject([{ tool: 'pay', input: { euros: 47 } }]);
  });

  nightlyIt('decides on several calls at once, after a question', async () => {
    const ids = [await send('payer', 'pay 1'), await send('payer', 'pay 2'), await send('payer', 'pay 3')];
    const page = await open();
    await badge(page, 3).waitFor();
    await page.getByLabel('Choose all calls').check();
    await entry(page, ids[2]!).getByRole('checkbox').uncheck();
    await page.getByRole('button', { name: 'Approve the chosen' }).click();
    const dialog = page.getByRole('dialog', { name: 'Approve these calls?' });
    await dialog.getByText('2 times').waitFor();
    await baton.expectAccessible(page);
    await dialog.getByRole('button', { name: 'Approve the chosen' }).click();
    await badge(page, 1).waitFor();
    await Promise.all([ended(ids[0]!), ended(ids[1]!)]);
    expect(tools.calls.map(({ input }) => input)).toEqual(
      expect.arrayContaining([{ euros: 1 }, { euros: 2 }]),
    );
    await page.getByLabel('Choose all calls').check();
    await page.getByRole('button', { name: 'Reject the chosen' }).click();
    const refusal = page.getByRole('dialog', { name: 'Reject these calls?' });
    await refusal.getByLabel('Reason of the refusal').fill('No more');
    await refusal.getByRole('button', { name: 'Reject the chosen' }).click();
    await page.getByRole('heading', { name: 'Nothing waits for you' }).waitFor();
    await ended(ids[2]!);
    expect(tools.calls).toHaveLength(2);
    expect(JSON.stringify((await taskOf(ids[2]!)).task)).toContain('No more');
  });

  nightlyIt('shows why an answer was not taken, and keeps it', async () => {
    const id = await send('echo', 'Book a room', ASKING);
    const page = await open();
    await entry(page, id).getByLabel('Your answer').fill('with a view');
    const headers = { authorization: `Bearer ${tenant.token}` };
    await fetch(`${baton.url}/v1/tasks/${id}/cancel`, { method: 'POST', headers });
    await entry(page, id).getByRole('button', { name: 'Send the answer' }).click();
    await entry(page, id).getByRole('alert').waitFor();
    expect(await entry(page, id).getByLabel('Your answer').inputValue()).toBe('with a view');
    await lookAgain(page);
    await page.getByRole('heading', { name: 'Nothing waits for you' }).waitFor();
  });

  it('shows a question with a schema as a form, and answers with data', async () => {
    const question = [
      { content: { $case: 'text', value: 'Where to?' } },
      { content: { $case: 'data', value: { requestedSchema: FORM } } },
    ];
    const id = await send('stepper', JSON.stringify({ ops: [{ op: 'ask', name: 'trip', question }] }));
    const page = await open();
    const asked = entry(page, id);
    await asked.getByText('Where to?', { exact: true }).waitFor();
    await baton.expectAccessibleInBothSchemes(page);
    // It does not show the schema itself.
    expect(await asked.locator('pre').count()).toBe(0);
    await asked.getByLabel('City').fill('Bonn');
    await asked.getByLabel('Nights').fill('3');
    await asked.getByLabel('With pets').check();
    await asked.getByRole('button', { name: 'Answer in words' }).click();
    await asked.getByLabel('Your answer').waitFor();
    await asked.getByRole('button', { name: 'Answer with the form' }).click();
    await asked.getByLabel('City').fill('Bonn');
    await asked.getByLabel('Nights').fill('3');
    await asked.getByLabel('Room').selectOption('double');
    await asked.getByRole('button', { name: 'Send the answer' }).click();
    await page.getByRole('heading', { name: 'Nothing waits for you' }).waitFor();
    await ended(id);
    const answers = (await taskOf(id)).task.history.map(({ parts }) => parts[0]);
    expect(answers).toContainEqual(
      expect.objectContaining({ data: { city: 'Bonn', nights: 3, pets: false, room: 'double' } }),
    );
  });

  describe('a question of a tool', () => {
    beforeEach(async () => {
      clerk.tasks.clear();
      provider.answer(({ body }) =>
        (body.messages as { role: string }[]).some(({ role }) => role === 'tool')
          ? { text: 'done' }
          : { calls: [{ name: 'clerk_report', input: {} }] },
      );
      const mcp = [{ ...PATIENT, name: 'clerk', url: clerk.url, neverRepeat: 'all' }];
      await createAgent('writer', { tools: { mcp } });
    });

    /** Lets the tool ask. @returns its task, the entry in the inbox, and the id of the task of the agent */
    async function ask(params: object) {
      const sent = send('writer', 'Write the report');
      const task = await clerk.task();
      task.ask({ who: { method: 'elicitation/create', params } });
      const id = await sent;
      const page = await open();
      return { task, id, page, asked: entry(page, id) };
    }
    const done = { content: [{ type: 'text', text: 'the report' }] };

    it('is a form, and its values reach the tool', async () => {
      const { task, id, page, asked } = await ask({ message: 'Where to?', requestedSchema: FORM });
      await asked.getByText('clerk_report of the server clerk asks:').waitFor();
      await asked.getByText('Where to?', { exact: true }).waitFor();
      // A yes alone would answer nothing, so it is not among the calls that are approved at once.
      expect(await page.getByLabel('Choose all calls').count()).toBe(0);
      await baton.expectAccessibleInBothSchemes(page);
      await asked.getByLabel('City').fill('Bonn');
      await asked.getByLabel('Nights').fill('3');
      await asked.getByLabel('Room').selectOption('double');
      await asked.getByRole('button', { name: 'Answer clerk_report' }).click();
      await clerk.until(() => task.updates.length > 0);
      const content = { city: 'Bonn', nights: 3, pets: false, room: 'double' };
      expect(task.updates).toEqual([{ who: { action: 'accept', content } }]);
      task.complete(done);
      await ended(id);
      // The log and the trace say what was answered, and who did.
      await page.goto(`/console/tasks/${id}?tab=log`);
      const answer = page
        .getByRole('list', { name: 'Events of the task' })
        .getByRole('listitem')
        .filter({ hasText: 'Answered clerk_report by test' });
      const said = 'City Bonn Nights 3 With pets no Room double';
      const fields = (entry: Locator) => entry.locator('dl').innerText();
      expect((await fields(answer)).replace(/\s+/g, ' ')).toBe(said);
      await page.goto(`/console/tasks/${id}?tab=trace`);
      await page.getByRole('button', { name: /^question input-required/ }).click();
      const span = page.getByRole('listitem').filter({ hasText: 'Answered by test' });
      expect((await fields(span)).replace(/\s+/g, ' ')).toBe(said);
      await baton.expectAccessible(page);
    });

    nightlyIt('is an address with its host, which opens in another tab, or is declined', async () => {
      const url = 'https://id.example/consent?for=7';
      const { task, id, page, asked } = await ask({ mode: 'url', message: 'Consent first', url });
      await asked.getByText('an address of id.example').waitFor();
      await baton.expectAccessibleInBothSchemes(page);
      const link = asked.getByRole('link', { name: url });
      expect(await link.getAttribute('target')).toBe('_blank');
      expect(await link.getAttribute('rel')).toBe('noopener noreferrer');
      expect(await link.getAttribute('href')).toBe(url);
      await asked.getByRole('button', { name: 'Decline clerk_report' }).click();
      await clerk.until(() => task.updates.length > 0);
      expect(task.updates).toEqual([{ who: { action: 'decline' } }]);
      task.complete(done);
      await ended(id);
    });
  });

  it('shows nothing to a token that may not call agents', async () => {
    const reader = await baton.stack.createToken(tenant.slug, 'tasks:read');
    const page = await open(reader);
    await page.getByText('It needs the scope agents:call').waitFor();
    expect(await page.getByRole('link', { name: 'Inbox' }).count()).toBe(0);
  });
});
