import { DRIVERS } from '../support/index.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { type ModelRequest, ModelProvider, type Reply } from '../support/model-provider/model-provider.js';
import { nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

const CANCELED = 'TASK_STATE_CANCELED';
const COMPLETED = 'TASK_STATE_COMPLETED';

const startStack = shareStack(DRIVERS[0]!, { OUTBOUND_ALLOW: '127.0.0.1', ...CRASH_SETTINGS }, { apis: 2 });
let provider: ModelProvider;
let stack: Stack;
let token: string;
let slug: string;

describe('delegation', () => {
  beforeAll(async () => {
    [stack, provider] = await Promise.all([startStack(), ModelProvider.start()]);
    await stack.replaceWorkers({ WORKER_CONCURRENCY: '1' });
    ({ token, slug } = await stack.createTenant());
    await Promise.all([create('lead', ['clerk', 'ring']), create('ring', ['lead']), create('clerk', [])]);
  });
  afterAll(async () => {
    await provider.stop();
    if (stack.workers.length > 1) await stack.killWorkers(stack.workers.slice(0, 1));
  });
  beforeEach(() => provider.reset());

  it('finishes a parent with three children on one worker with one slot', async () => {
    script(3, ({ body }) => ({ text: `found ${/file \d/.exec(JSON.stringify(body))?.[0]}` }));
    const { result } = await lead().call('SendMessage', sendParams('find three files'));
    const { task } = result!;
    expect(task.status.state).toBe(COMPLETED);
    const found = ['found file 1', 'found file 2', 'found file 3'];
    expect(repliesOf(task)).toEqual(found.map((content) => ({ agent: 'clerk', depth: 1, content })));
    const { parent_id, child_ids } = await requestOf(task.id as string);
    expect(parent_id).toBeNull();
    expect(child_ids).toHaveLength(3);
    const child = await requestOf(child_ids[0] as string);
    expect(child).toMatchObject({
      parent_id: task.id,
      task: {
        metadata: { 'baton.parent': { taskId: task.id, agent: 'lead', depth: 1 } },
        history: [{ referenceTaskIds: [task.id] }],
      },
    });
    const frames = await framesOf(task.id as string);
    const texts = frames.flatMap(({ artifactUpdate }) =>
      (artifactUpdate?.artifact.parts ?? []).map(({ text }: any) => text as string | undefined),
    );
    expect(texts.filter((text) => text !== undefined).join('')).toBe(`All: ${found.join(' + ')}`);
    expect(provider.requests).toHaveLength(5);
  });

  it('refuses circles, and lets the model go on', async () => {
    provider.answer((request) => {
      const { who, results } = asked(request);
      if (results.length > 0) return { text: results.join() };
      return { calls: [{ name: who === 'lead' ? 'ask_ring' : 'ask_lead', input: { message: 'your turn' } }] };
    });
    const { result } = await lead().call('SendMessage', sendParams('round and round'));
    expect(result!.task.status.state).toBe(COMPLETED);
    expect(repliesOf(result!.task)).toMatchObject([
      { agent: 'ring', content: expect.stringContaining('lead is already working on this') as string },
    ]);
  });

  it('cancels three children with their parent, at once and for good', async () => {
    // The children run at the same time.
    await stack.addWorker();
    let release = (): void => undefined;
    const after = new Promise<void>((resolve) => (release = resolve));
    script(3, () => ({ text: 'too late', after }));
    const id = await begin();
    const held = await Promise.all([2, 3, 4].map((number) => provider.request(number)));
    const canceled = await lead(1).call('CancelTask', { id });
    expect(canceled.result?.status.state).toBe(CANCELED);
    const { child_ids } = await requestOf(id);
    const children = await Promise.all((child_ids as string[]).map(requestOf));
    expect(children.map(({ task }) => task.status.state)).toEqual([CANCELED, CANCELED, CANCELED]);
    expect(await Promise.all(held.map(({ answered }) => answered))).toEqual([false, false, false]);
    release();
    expect((await framesOf(id)).at(-1).statusUpdate.status.state).toBe(CANCELED);
    expect(provider.requests).toHaveLength(4);
  });

  nightlyIt('goes on after the worker was killed that ran a child while its parent waited', async () => {
    let killed = false;
    script(1, async () => {
      if (killed) return { text: 'found it' };
      return new Promise<Reply>(() => undefined);
    });
    const id = await begin();
    await provider.request(2);
    await stack.killWorkers();
    killed = true;
    await stack.addWorker();
    expect((await framesOf(id)).at(-1).statusUpdate.status.state).toBe(COMPLETED);
    const { task, child_ids } = await requestOf(id);
    expect(repliesOf(task)).toEqual([{ agent: 'clerk', depth: 1, content: 'found it' }]);
    expect(child_ids).toHaveLength(1);
    // The parent's model is asked once for each of its two steps; only the call that was in flight is made again.
    expect(provider.requests.map((request) => asked(request).who)).toEqual([
      'lead',
      'clerk',
      'clerk',
      'lead',
    ]);
  });

  describe('the index', () => {
    const ask = async () => {
      const index = new RawCaller(stack.url(0, 'index'), token);
      return (await index.call('SendMessage', sendParams('who has file 9?'))).result!.task;
    };

    it('answers that it has no model, and lists the agents', async () => {
      const { artifacts } = await ask();
      expect(artifacts[0].parts[0].text).toMatch(
        /There is no model behind me(.|\n)*- clerk \(clerk\): The clerk/,
      );
      expect(provider.requests).toHaveLength(0);
    });

    it('routes to the agents of the tenant once it has one', async () => {
      const url = ['--index-model-url', provider.url];
      await stack.baton('tenants', 'set', slug, '--index-model', 'openai-compatible/m', ...url);
      provider.answer((request) => {
        const { who, results } = asked(request);
        if (who === 'clerk') return { text: 'I have it' };
        return results.length > 0
          ? { text: `clerk says: ${results.join()}` }
          : { calls: [{ name: 'ask_clerk', input: { message: 'who has file 9?' } }] };
      });
      const task = await ask();
      expect(task.status.state).toBe(COMPLETED);
      expect(repliesOf(task)).toEqual([{ agent: 'clerk', depth: 1, content: 'I have it' }]);
      const tools = provider.requests[0]!.body.tools as { function: { name: string } }[];
      expect(tools.map((tool) => tool.function.name).sort()).toEqual([
        'ask_clerk',
        'ask_echo',
        'ask_lead',
        'ask_ring',
      ]);
    });
  });
});

async function create(name: string, agents: string[]): Promise<void> {
  const config = { model: 'openai-compatible/m', baseUrl: provider.url, prompt: `You are ${name}.`, agents };
  const definition = { name, description: `The ${name}`, runtime: 'llm', config };
  await stack.rest(token).write('PUT', `/v1/agents/${name}`, definition);
}

/** Whose model is asked, and whether it has results of tools already. */
function asked({ body }: ModelRequest): { who: string; results: string[] } {
  const messages = body.messages as { role: string; content: any }[];
  const who = /You are (?:the )?(\w+)/.exec(JSON.stringify(messages[0]))?.[1] ?? '';
  return {
    who,
    results: messages.filter(({ role }) => role === 'tool').map(({ content }) => String(content)),
  };
}

/** Lead asks the clerk so often and says what came of it; the clerk says what `clerk` makes of its request. */
function script(times: number, clerk: (request: ModelRequest) => Reply | Promise<Reply>): void {
  provider.answer((request) => {
    const { who, results } = asked(request);
    if (who === 'clerk') return clerk(request);
    if (results.length > 0) return { text: ['All: ', results.join(' + ')] };
    const numbers = Array.from({ length: times }, (_, i) => i + 1);
    return {
      calls: numbers.map((n) => ({ name: 'ask_clerk', input: { message: `file ${n}` }, id: `call_${n}` })),
    };
  });
}

const lead = (api = 0) => new RawCaller(stack.url(api, 'lead'), token);
const requestOf = (id: string): Promise<any> => stack.rest(token, 1).task(id);
/** Send without waiting; the id of the task. */
const begin = async (): Promise<string> => {
  const configuration = { returnImmediately: true };
  const { result } = await lead().call('SendMessage', { ...sendParams('go'), configuration });
  return result!.task.id as string;
};
const framesOf = async (id: string): Promise<any[]> => {
  const frames: any[] = [];
  for await (const { data } of lead().stream('SubscribeToTask', { id }, 0)) frames.push(data.result);
  return frames;
};
const repliesOf = (task: any): any[] =>
  task.artifacts
    .filter(({ metadata }: any) => metadata?.['baton.event'] === 'agent-reply')
    .map(({ parts }: any) => parts[0].data);
