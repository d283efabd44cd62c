import { Role, TaskState, type SendMessageRequest, type StreamResponse } from '@a2a-js/sdk';
import {
  type Client,
  ClientFactory,
  DefaultAgentCardResolver,
  JsonRpcTransportFactory,
} from '@a2a-js/sdk/client';
import { randomUUID } from 'node:crypto';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY, shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';

const KEY = 'sk-test-4711';

const startStack = shareStack('postgres', {
  BATON_MASTER_KEY: MASTER_KEY,
  OUTBOUND_ALLOW: '127.0.0.1',
  MODEL_PRICES: JSON.stringify({
    'openai/*': { input: 1, output: 1 },
    'anthropic/*': { input: 2, output: 4 },
  }),
  ...CRASH_SETTINGS,
});
let stack: Stack;
let tenant: TestTenant;
let provider: ModelProvider;

const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] };
/** The first two are one line apart. */
const AGENTS = {
  openai: { model: 'openai/gpt-5-mini' },
  anthropic: { model: 'anthropic/claude-sonnet-4-5' },
  counter: { model: 'openai/gpt-5-mini', output: { schema } },
};

/** As the tenant does it. */
async function put(path: string, body: object): Promise<void> {
  const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
  const url = `${stack.apis[0]!.url}/v1/${path}`;
  const answer = await fetch(url, { method: 'PUT', headers, body: JSON.stringify(body) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status} ${await answer.text()}`);
}

// oxlint-disable-next-line typescript/no-explicit-any -- tests look at the wire
const get = (path: string): Promise<any> => stack.rest(tenant.token).get(`/v1/${path}`);

/** An SDK client of an agent. */
async function connect(slug: keyof typeof AGENTS): Promise<Client> {
  const fetchImpl: typeof fetch = (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${tenant.token}`);
    return fetch(input, { ...init, headers });
  };
  const factory = new ClientFactory({
    transports: [new JsonRpcTransportFactory({ fetchImpl })],
    cardResolver: new DefaultAgentCardResolver({ fetchImpl }),
  });
  return factory.createFromUrl(`${stack.url(0, slug)}/`);
}

const request = (text: string, contextId = ''): SendMessageRequest => ({
  tenant: '',
  message: {
    messageId: randomUUID(),
    contextId,
    taskId: '',
    role: Role.ROLE_USER,
    parts: [{ content: { $case: 'text', value: text }, metadata: undefined, filename: '', mediaType: '' }],
    metadata: undefined,
    extensions: [],
    referenceTaskIds: [],
  },
  configuration: undefined,
  metadata: undefined,
});

/** What a caller has of a stream: the reply as it folds it, and how the task ended. */
class Caller {
  taskId = '';
  contextId = '';
  state: TaskState | undefined;
  metadata: Record<string, unknown> | undefined;
  private texts: string[] = [];
  data: unknown;

  async follow(stream: AsyncIterable<StreamResponse>, onText: () => Promise<void> | void = () => undefined) {
    for await (const { payload } of stream) {
      if (payload?.$case === 'task')
        [this.taskId, this.contextId] = [payload.value.id, payload.value.contextId];
      if (payload?.$case === 'statusUpdate') {
        this.state = payload.value.status?.state;
        this.metadata = payload.value.metadata ?? this.metadata;
      }
      if (payload?.$case !== 'artifactUpdate') continue;
      const chunk = (payload.value.artifact?.parts ?? []).map(({ content }) => {
        if (content?.$case === 'data') this.data = content.value;
        return content?.$case === 'text' ? content.value : '';
      });
      this.texts = payload.value.append ? [...this.texts, ...chunk] : chunk;
      await onText();
    }
    return this;
  }

  get text(): string {
    return this.texts.join('');
  }
}

describe('an llm agent', () => {
  beforeAll(async () => {
    provider = await ModelProvider.start({ key: KEY });
    stack = await startStack();
    tenant = await stack.createTenant();
    for (const name of ['openai', 'anthropic'])
      await put(`secrets/${name}`, { value: KEY, origins: [provider.origin] });
    for (const [slug, settings] of Object.entries(AGENTS)) {
      const config = { baseUrl: provider.url, prompt: 'Be brief.', ...settings };
      await put(`agents/${slug}`, { name: slug, description: 'A helper.', runtime: 'llm', config });
    }
  });
  afterEach(() => provider.reset());
  afterAll(async () => {
    await provider.stop();
  });

  it('streams over either provider, one line apart, and remembers the context', async () => {
    for (const slug of ['openai', 'anthropic'] as const) {
      provider.reset();
      const client = await connect(slug);
      const { model } = AGENTS[slug];
      provider.reply({ text: ['Hello ', 'Ada.'], usage: { input: 9, output: 4 } }, { text: 'Ada, I think.' });
      const first = await new Caller().follow(client.sendMessageStream(request('I am Ada')));
      expect(first.text).toBe('Hello Ada.');
      expect(first.state).toBe(TaskState.TASK_STATE_COMPLETED);
      expect(first.metadata?.['baton.usage']).toMatchObject({ inputTokens: 9, outputTokens: 4, model });
      const asked = request('Who am I?', first.contextId);
      const second = await new Caller().follow(client.sendMessageStream(asked));
      expect(second.text).toBe('Ada, I think.');
      const sent = JSON.stringify((await provider.request(2)).body);
      for (const text of ['Be brief.', 'I am Ada', 'Hello Ada.', 'Who am I?']) expect(sent).toContain(text);
      const stored = await client.getTask({ tenant: '', id: first.taskId });
      expect(stored.metadata?.['baton.usage']).toMatchObject({ inputTokens: 9, outputTokens: 4 });
    }
    expect(provider.requests[0]?.api).toBe('anthropic');
  });

  // By day `durable-steps.spec` has this and the next.
  nightlyIt('streams its whole answer once though its worker is killed in the middle of it', async () => {
    const client = await connect('openai');
    provider.reply({ text: ['It is ', 'half past'], fault: { kind: 'stall', after: 4 } });
    provider.reply({ text: ['It is ', 'noon.'] });
    let isKilled = false;
    const caller = await new Caller().follow(
      client.sendMessageStream(request('What time is it?')),
      async () => {
        if (isKilled) return;
        isKilled = true;
        await stack.replaceWorkers();
      },
    );
    expect(caller.text).toBe('It is noon.');
    expect(caller.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(provider.requests).toHaveLength(2);
  });

  nightlyIt('is not asked again for a step that had ended before its worker was killed', async () => {
    const client = await connect('counter');
    // The first step ends with an answer that must be corrected; the worker dies in the second.
    provider.reply(
      { text: '{"n": "three"}' },
      { text: '', fault: { kind: 'stall', after: 1 } },
      { text: '{"n": 3}' },
    );
    const following = new Caller().follow(client.sendMessageStream(request('How many?')));
    await provider.request(2);
    await stack.replaceWorkers();
    const caller = await following;
    expect(caller.data).toEqual({ n: 3 });
    expect(caller.state).toBe(TaskState.TASK_STATE_COMPLETED);
    expect(provider.requests).toHaveLength(3);
    expect(JSON.stringify((await provider.request(3)).body)).toContain('/n must be integer');
  });

  it('asks its fallback model if the first is overloaded, and shows which one has answered and what it cost', async () => {
    const fallback = [{ model: 'anthropic/claude-sonnet-4-5', baseUrl: provider.url }];
    const config = { ...AGENTS.openai, baseUrl: provider.url, retries: 1, fallback };
    await put('agents/careful', { name: 'careful', description: 'A helper.', runtime: 'llm', config });
    provider.answer(({ api }) =>
      api === 'anthropic' ? { text: 'Hello.', usage: { input: 1000, output: 500 } } : { status: 529 },
    );
    const caller = new RawCaller(stack.url(0, 'careful'), tenant.token);
    // oxlint-disable-next-line typescript/no-explicit-any -- tests look at the wire
    const { task } = (await caller.call('SendMessage', sendParams('Hi'))).result as any;
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(task.artifacts[0].parts).toMatchObject([{ text: 'Hello.' }]);
    expect(task.metadata['baton.usage']).toMatchObject({
      model: 'anthropic/claude-sonnet-4-5',
      inputTokens: 1000,
    });
    expect((await get(`tasks/${task.id}/trace`)).model_calls).toMatchObject([
      { model: 'openai/gpt-5-mini', finish: null, error: expect.stringContaining('529') },
      { model: 'openai/gpt-5-mini', finish: null },
      { model: 'anthropic/claude-sonnet-4-5', finish: 'stop', cost: (1000 * 2 + 500 * 4) / 1e6 },
    ]);
  });

  it('is cut off from its provider when its task is canceled', async () => {
    const client = await connect('anthropic');
    provider.reply({ text: ['one ', 'two'], fault: { kind: 'stall', after: 5 } });
    const caller = new Caller();
    await caller.follow(client.sendMessageStream(request('Count')), async () => {
      await client.cancelTask({ tenant: '', id: caller.taskId, metadata: undefined });
    });
    expect(caller.state).toBe(TaskState.TASK_STATE_CANCELED);
    expect(await (await provider.request(1)).answered).toBe(false);
  });
});
