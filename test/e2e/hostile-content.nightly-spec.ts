import { setTimeout as delay } from 'node:timers/promises';
import { randomBytes } from 'node:crypto';
import { DRIVERS } from '../support/index.js';
import { ModelProvider } from '../support/model-provider/model-provider.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack, type TestTenant } from '../support/stack.js';

const KEY = 'sk-test-4711';
const FENCE = '```';

/** 2 to the power of 40 looks for one value. */
function endlessSchema(): Record<string, unknown> {
  const $defs: Record<string, unknown> = { d0: { type: 'string' } };
  for (let i = 1; i <= 40; i++) {
    const $ref = `#/$defs/d${String(i - 1)}`;
    $defs[`d${String(i)}`] = { not: { not: { allOf: [{ $ref }, { $ref }] } } };
  }
  return { type: 'object', $defs, properties: { a: { $ref: '#/$defs/d40' } } };
}

// Messaging has no part in this: one driver is enough.
describe('hostile content', () => {
  let stack: Stack;
  let provider: ModelProvider;
  let attacker: TestTenant;
  let other: RawCaller;

  beforeAll(async () => {
    provider = await ModelProvider.start({ key: KEY });
    stack = await Stack.start({
      driver: DRIVERS[0]!,
      env: { BATON_MASTER_KEY: randomBytes(32).toString('base64'), OUTBOUND_ALLOW: '127.0.0.1' },
    });
    attacker = await stack.createTenant();
    other = new RawCaller(stack.url(0), (await stack.createTenant()).token);
    await put('secrets/openai', { value: KEY, origins: [provider.origin] });
  });
  afterEach(() => provider.reset());
  afterAll(async () => {
    await stack.stop();
    await provider.stop();
  });

  async function put(path: string, body: object): Promise<{ status: number; text: string }> {
    const answer = await fetch(`${stack.apis[0]!.url}/v1/${path}`, {
      method: 'PUT',
      headers: { authorization: `Bearer ${attacker.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    return { status: answer.status, text: await answer.text() };
  }
  const agent = (schema: object): object => ({
    name: 'judge',
    description: 'Judges.',
    runtime: 'llm',
    config: { model: 'openai/gpt-5-mini', baseUrl: provider.url, retries: 0, output: { schema } },
  });
  const ask = (slug: string) =>
    new RawCaller(stack.url(0, slug), attacker.token).call('SendMessage', sendParams('go'));
  /** Another tenant's echo comes back, however often it is asked, as long as the attack continues. */
  async function meanwhile<T>(attack: Promise<T>): Promise<T> {
    const state = { over: false };
    void attack.finally(() => (state.over = true));
    do {
      const { result } = await other.call('SendMessage', sendParams('hello'));
      expect(result?.task.status.state).toBe('TASK_STATE_COMPLETED');
      await delay(20);
    } while (!state.over);
    return attack;
  }
  const statusOf = ({ result }: Awaited<ReturnType<typeof ask>>) => ({
    state: result?.task.status.state as string,
    text: result?.task.status.message?.parts[0].text as string,
  });

  it('fails the run of a schema that no validator ends with', async () => {
    expect((await put('agents/judge', agent(endlessSchema()))).status).toBe(201);
    provider.reply({ text: '{"a":"x"}' });
    const { state, text } = statusOf(await meanwhile(ask('judge')));
    expect(state).toBe('TASK_STATE_FAILED');
    expect(text).toContain(
      'config.output.schema of the agent takes longer than 2000 ms: make the schema simpler',
    );
  });

  it('refuses a schema of 856 KB', async () => {
    const properties = Object.fromEntries(
      Array.from({ length: 12_000 }, (_, i) => [`p${String(i)}`, { type: 'string', title: 'x'.repeat(30) }]),
    );
    const { status, text } = await meanwhile(
      put('agents/x?dryRun=true', agent({ type: 'object', properties })),
    );
    expect(status).toBe(400);
    expect(text).toContain('config.output.schema: has more than 5000 objects and lists');
  });

  it('refuses 16 MB of [', async () => {
    const answer = await meanwhile(
      fetch(stack.url(0), {
        method: 'POST',
        headers: { authorization: `Bearer ${attacker.token}`, 'content-type': 'application/json' },
        body: '['.repeat(16_000_000),
      }).then((response) => response.text()),
    );
    expect(answer).toContain('nested deeper than 200 levels');
  });

  it('takes a fence without an end for what it is', async () => {
    await put('agents/plain', agent({ type: 'object' }));
    const text = `${FENCE}${'\n'.repeat(100_000)}x`;
    provider.reply({ text }, { text }, { text });
    expect(statusOf(await meanwhile(ask('plain')))).toEqual({
      state: 'TASK_STATE_FAILED',
      text: "The model's answer is not of the agent's output schema: it is not JSON.",
    });
  });
});
