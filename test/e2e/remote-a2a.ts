import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { nightlyDescribe, nightlyIt } from '../support/nightly.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { RemoteAgent } from '../support/remote-agent/remote-agent.js';
import { MASTER_KEY, shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';

const counted = (n: number): string => Array.from({ length: n }, (_, i) => `${i + 1} `).join('');

/** The text of an artifact, as a caller folds the frames. */
function answerIn(frames: Frame[]): string {
  let text = '';
  for (const { data } of frames) {
    const update = data.result?.artifactUpdate;
    if (!update) continue;
    const said = update.artifact.parts.map((part: { text?: string }) => part.text ?? '').join('') as string;
    text = update.append ? text + said : said;
  }
  return text;
}

const stateIn = (frame: Frame | undefined): unknown => frame?.data.result?.statusUpdate?.status.state;

describe('agents that live elsewhere', () => {
  const startStack = shareStack('postgres', {
    OUTBOUND_ALLOW: '127.0.0.1',
    BATON_MASTER_KEY: MASTER_KEY,
    ...CRASH_SETTINGS,
  });
  const remotes: Record<string, RemoteAgent> = {};
  let stack: Stack;
  let tenant: TestTenant;

  beforeAll(async () => {
    for (const version of ['1.0', '0.3'] as const) {
      remotes[version] = await RemoteAgent.start({ version, token: 'sesame' });
    }
    stack = await startStack();
    tenant = await stack.createTenant('agents:call', 'tasks:read', 'agents:write', 'secrets:write');
    await Promise.all([
      setSecret('sesame', 'sesame', [remote('1.0').url, remote('0.3').url]),
      setSecret('own', tenant.token, [stack.url(0), 'http://169.254.169.254']),
    ]);
    await Promise.all([
      create('speaks-1-0', remote('1.0').url, 'sesame'),
      create('speaks-0-3', remote('0.3').url, 'sesame'),
      create('far-echo', stack.url(0, 'echo'), 'own'),
      create('sly', 'http://169.254.169.254/latest/', 'own'),
    ]);
  });
  afterAll(async () => {
    await Promise.all(Object.values(remotes).map((agent) => agent.kill()));
  });

  const callerOf = (agent: string): RawCaller => new RawCaller(stack.url(0, agent), tenant.token);

  function remote(version: string): RemoteAgent {
    const agent = remotes[version];
    if (!agent) throw new Error(`there is no remote agent with ${version}`);
    return agent;
  }

  const write = (method: string, path: string, body: object): Promise<unknown> =>
    stack.rest(tenant.token).write(method, `/v1/${path}`, body);

  const setSecret = (name: string, value: string, urls: string[]) =>
    write('PUT', `secrets/${name}`, { value, origins: urls.map((url) => new URL(url).origin) });

  function create(slug: string, card: string, secret: string): Promise<unknown> {
    const config = { card, headers: { Authorization: { secret, prefix: 'Bearer ' } } };
    const about = { name: slug, description: 'Lives elsewhere', runtime: 'remote-a2a' };
    return write('POST', 'agents', { slug, ...about, config });
  }

  /** The frames of a stream; `onAnswer` is called with the answer so far after each. */
  async function stream(caller: RawCaller, text: string, onAnswer: (answer: string) => unknown = () => null) {
    const frames: Frame[] = [];
    for await (const frame of caller.stream('SendStreamingMessage', sendParams(text))) {
      frames.push(frame);
      await onAnswer(answerIn(frames));
    }
    return frames;
  }

  // By day remote-versions.spec has both over each binding.
  nightlyDescribe.each(['1.0', '0.3'])('over A2A %s', (version) => {
    const slug = `speaks-${version.replace('.', '-')}`;

    it('are streamed, and nothing is lost or doubled when they are restarted in mid-stream', async () => {
      remote(version).executor.holdAfter(3);
      let kills = 0;
      const frames = await stream(callerOf(slug), 'count 8', async (answer) => {
        if (answer !== counted(3) || kills > 0) return;
        kills += 1;
        await remote(version).kill();
        remotes[version] = await remote(version).restart();
      });
      expect(kills).toBe(1);
      expect(answerIn(frames)).toBe(counted(8));
      expect(stateIn(frames.at(-1))).toBe('TASK_STATE_COMPLETED');
      const id = frames[0]?.data.result?.task.id as string;
      const { result } = await callerOf(slug).call('GetTask', { id });
      const stored = result?.artifacts[0].parts.map((part: { text: string }) => part.text) as string[];
      expect(stored.join('')).toBe(counted(8));
    });
  });

  it('ask, and get the answer from another worker', async () => {
    const asked = await callerOf('speaks-0-3').call('SendMessage', sendParams('ask'));
    const { id, status } = asked.result!.task;
    expect(status.state).toBe('TASK_STATE_INPUT_REQUIRED');
    await stack.replaceWorkers();
    const answer = sendParams('the red one', { taskId: id });
    const answered = await callerOf('speaks-0-3').call('SendMessage', answer);
    const { task } = answered.result!;
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(task.artifacts[0].parts[0].text).toBe('the red one');
    expect(JSON.stringify(task)).not.toContain(remote('0.3').tasks.at(-1)?.id);
  });

  // By day `remote-a2a-runtime.spec` has this.
  nightlyIt('are not asked again when the worker dies in mid-stream', async () => {
    const agent = remote('1.0');
    const times = (name: string): number => agent.methods.filter((method) => method === name).length;
    const sends = times('SendStreamingMessage');
    const subscriptions = times('SubscribeToTask');
    agent.executor.holdAfter(3);
    let isKilled = false;
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const frames = await stream(callerOf('speaks-1-0').with({ traceparent }), 'count 6', async (answer) => {
      if (answer !== counted(3) || isKilled) return;
      isKilled = true;
      await stack.replaceWorkers();
      void agent.wasAsked('SubscribeToTask', subscriptions + 1).then(() => agent.executor.release());
    });
    expect(answerIn(frames)).toBe(counted(6));
    expect(stateIn(frames.at(-1))).toBe('TASK_STATE_COMPLETED');
    expect(times('SendStreamingMessage')).toBe(sends + 1);
    const traced = agent.asked.filter(({ headers }) => headers.traceparent === traceparent);
    const methods = traced.map(({ method }) => method);
    expect(methods).toEqual(expect.arrayContaining(['SendStreamingMessage', 'SubscribeToTask']));
  });

  it('get a cancel while they stream', async () => {
    const agent = remote('1.0');
    const cancels = agent.methods.filter((method) => method === 'CancelTask').length;
    let isCanceled = false;
    const frames: Frame[] = [];
    const caller = callerOf('speaks-1-0');
    for await (const frame of caller.stream('SendStreamingMessage', sendParams('count 1000000'))) {
      frames.push(frame);
      if (isCanceled || frames.length < 20) continue;
      isCanceled = true;
      await caller.call('CancelTask', { id: frames[0]?.data.result?.task.id });
    }
    expect(stateIn(frames.at(-1))).toBe('TASK_STATE_CANCELED');
    await agent.wasAsked('CancelTask', cancels + 1);
  });

  it('report what they cost, and the usage of the tenant has it', async () => {
    await write('POST', 'agents', {
      slug: 'priced',
      name: 'priced',
      description: 'Lives elsewhere',
      runtime: 'remote-a2a',
      config: {
        card: remote('1.0').url,
        headers: { Authorization: { secret: 'sesame', prefix: 'Bearer ' } },
      },
      price: { perTask: '0.02' },
    });
    await callerOf('priced').call('SendMessage', sendParams('cost 0.25'));
    await callerOf('priced').call('SendMessage', sendParams('hello'));
    const door = stack.cliOptions(tenant.token);
    const { currency, usage } = JSON.parse(
      await stack.baton('usage', '--by', 'agent', '--agent', 'priced', '--json', ...door),
    );
    expect(currency).toBe('USD');
    expect(usage).toMatchObject([{ tasks: 2, cost: 0.29, agent_cost: 0.29, unpriced_tokens: 0 }]);
    const shown = await stack.baton('usage', '--by', 'agent', '--agent', 'priced', ...door);
    expect(shown).toMatch(/COST \(USD\)\n.* 0\.2900/);
  });

  it('may be agents of another Baton', async () => {
    const params = sendParams('Hello', { metadata: { echo: { chunks: 5 } } });
    const frames: Frame[] = [];
    for await (const frame of callerOf('far-echo').stream('SendStreamingMessage', params)) frames.push(frame);
    expect(answerIn(frames)).toBe('Hello'.repeat(5));
    expect(stateIn(frames.at(-1))).toBe('TASK_STATE_COMPLETED');
  });

  it('are no longer called when the operator closes them to the tenant', async () => {
    const { host } = new URL(remote('1.0').url);
    const before = remote('1.0').asked.length;
    const answer = async (): Promise<unknown> => {
      const { result } = await callerOf('speaks-1-0').call('SendMessage', sendParams('count 1'));
      const { state, message } = result!.task.status;
      return state === 'TASK_STATE_FAILED' ? message.parts[0].text : state;
    };
    await stack.baton('tenants', 'egress', tenant.slug, '--deny', host);
    expect(await answer()).toBe(
      '"127.0.0.1" is in the list of destinations that this tenant may not call (egress_deny). The operator of ' +
        'this server can change the list',
    );
    expect(remote('1.0').asked).toHaveLength(before);
    await stack.baton('tenants', 'egress', tenant.slug, '--deny', 'none');
    expect(await answer()).toBe('TASK_STATE_COMPLETED');
  });

  it('may not be addresses of the operator’s network', async () => {
    const { result } = await callerOf('sly').call('SendMessage', sendParams('secrets, please'));
    const { state, message } = result!.task.status;
    expect(state).toBe('TASK_STATE_FAILED');
    expect(message.parts[0].text).toBe(
      '"169.254.169.254" is not at a public address, so agents may not call it. The operator of this server can ' +
        'allow it with OUTBOUND_ALLOW',
    );
  });
});
