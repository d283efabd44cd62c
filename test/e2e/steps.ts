import { cpSync, existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { BatonProcess } from '../support/baton-process.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { DRIVER, nightlyIt } from '../support/nightly.js';
import { RawCaller, type RpcAnswer, sendParams } from '../support/raw-caller.js';
import { shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';
import { until } from '../support/until.js';

/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

const ROOT = join(__dirname, '../..');
const COMPLETED = 'TASK_STATE_COMPLETED';
const WAITS = 'TASK_STATE_INPUT_REQUIRED';

const startStack = shareStack(
  DRIVER,
  { ...CRASH_SETTINGS, WORKER_CONCURRENCY: '1', MAX_ATTEMPTS: '20' },
  {
    installAgents: (agents) => {
      cpSync(join(ROOT, 'test/agents/stepper'), join(agents, 'stepper'), { recursive: true });
      cpSync(join(ROOT, 'examples/agents/trial'), join(agents, 'trial'), { recursive: true });
    },
  },
);
let folder: string;
let stack: Stack;
let token: string;
let guest: string;
/** What the example has asked before any test, and on which worker. */
let asked: RpcAnswer;
let askedOn: BatonProcess;

describe('durable steps of an agent in code', () => {
  beforeAll(async () => {
    stack = await startStack();
    folder = join(stack.env.EXECUTOR_WRITE!, 'steps');
    mkdirSync(folder);
    const tenant = await stack.createTenant();
    token = tenant.token;
    guest = await stack.createToken(tenant.slug, 'agents:call', 'tasks:read');
    askedOn = stack.workers[0]!;
    asked = await callerOf('trial').call('SendMessage', sendParams('hi'));
  });

  it('are not run again once they have ended, and one that dies under way is: worker and process', async () => {
    for (const who of ['worker', 'process'] as const) {
      const [file, gate] = [join(folder, `${who}-effects`), join(folder, `${who}-gate`)];
      const answer = stepper(file, [
        { op: 'say', name: 'begun' },
        { op: 'chunk', name: '1 ' },
        { op: 'step', name: 'a' },
        { op: 'say', name: 'a is done' },
        { op: 'chunk', name: '2 ', append: true },
        { op: 'step', name: 'b', until: gate },
        { op: 'chunk', name: '3', append: true },
        { op: 'step', name: 'c' },
      ]);
      await until(() => namesIn(file).includes('b'));
      if (who === 'worker') await stack.replaceWorkers();
      else process.kill(pidOf(file, 'b'), 'SIGKILL');
      await until(() => namesIn(file).filter((name) => name === 'b').length === 2);
      writeFileSync(gate, '');
      const { result } = await answer;
      expect(saidIn(result!.task)).toBe('["a","b","c"]');
      expect(namesIn(file)).toEqual(['a', 'b', 'b', 'c']);
      const texts = result!.task.artifacts[0].parts.map((part: any) => part.text);
      expect(texts.join('')).toBe('1 2 3');
      const events = await eventsOf(result!.task.id as string);
      for (const said of ['begun', 'a is done']) {
        expect(events.filter((event) => event.includes(`"${said}"`))).toHaveLength(1);
      }
    }
  });

  nightlyIt('sleep without a slot, also while no worker lives', async () => {
    /** Another turn while one sleeps, in the only slot of the only worker. On a slow machine the sleep must be longer. */
    const sleepFor = async (seconds: number): Promise<{ id: string; file: string; ms: number }> => {
      const file = join(folder, `sleep-${seconds}`);
      const ops = [
        { op: 'step', name: 'before' },
        { op: 'sleep', name: 'nap', for: `${seconds}s` },
        { op: 'step', name: 'after' },
      ];
      const id = await begin(file, ops);
      await until(async () => (await stepsOf(id)).some(({ kind }) => kind === 'sleep'));
      const other = await stepper(join(folder, 'other'), [{ op: 'step', name: 'x' }]);
      expect(saidIn(other.result!.task)).toBe('["x"]');
      const names = namesIn(file);
      const [, nap] = await stepsOf(id);
      if (nap.state === 'succeeded') return sleepFor(2 * seconds);
      expect(names).toEqual(['before']);
      return { id, file, ms: 1000 * seconds };
    };
    const { id, file, ms } = await sleepFor(5);
    await stack.replaceWorkers();
    await until(async () => (await taskOf(id)).status.state === COMPLETED);
    expect(namesIn(file)).toEqual(['before', 'after']);
    const [, nap] = await stepsOf(id);
    expect(nap).toMatchObject({ name: 'nap', state: 'succeeded', attempts: 1, error: null });
    expect(Date.parse(nap.ended_at) - Date.parse(nap.started_at)).toBeGreaterThanOrEqual(ms - 10);
  });

  it('get the answer of the caller on another worker, in the example of the documentation', async () => {
    const { id, status } = asked.result!.task;
    expect(status).toMatchObject({ state: WAITS, message: { parts: [{ text: 'What is your name?' }] } });
    await stack.outlive(askedOn);
    const answered = await callerOf('trial').call('SendMessage', sendParams('Ada', { taskId: id }));
    expect(saidIn(answered.result!.task)).toMatch(/^Goodbye Ada, account [0-9a-f-]{36} is closed\.$/);
    expect(await stepsOf(id)).toMatchObject([
      { name: 'open account', kind: 'run', state: 'succeeded', attempts: 1 },
      { name: 'name', kind: 'input', state: 'succeeded' },
      { name: 'trial', kind: 'sleep', state: 'succeeded' },
      { name: 'close account', kind: 'run', state: 'succeeded', attempts: 1 },
    ]);
    // They show the code, as a stack does.
    expect(await stepsOf(id, guest)).toBeUndefined();
    const shown = await stack.baton('tasks', 'show', id, '--url', stack.apis[0]!.url, '--token', token);
    expect(shown).toMatch(/close account\s+run\s+succeeded\s+1/);
    const page = readFileSync(join(ROOT, 'docs/agents/durable-steps.md'), 'utf8');
    expect(page).toContain(readFileSync(join(ROOT, 'examples/agents/trial/index.mjs'), 'utf8'));
  });

  it('call other agents with one worker and one slot, and never in a circle', async () => {
    const ops = [
      { op: 'step', name: 'before' },
      { op: 'call', name: 'ask', agent: 'echo', message: 'hello' },
      { op: 'call', name: 'again', agent: 'stepper', message: '{}' },
    ];
    const { result } = await stepper(join(folder, 'call-effects'), ops);
    const [before, echoed, refused] = JSON.parse(saidIn(result!.task)) as string[];
    expect([before, echoed]).toEqual(['before', 'hello']);
    expect(refused).toMatch(/cannot be called in a circle/);
    expect(namesIn(join(folder, 'call-effects'))).toEqual(['before']);
  });

  it.each([
    ['sleeps', { op: 'sleep', name: 'nap', for: '1h' }, 'sleep'],
    ['waits for its caller', { op: 'ask', name: 'ask', question: 'What?' }, 'input'],
    ['never ends a step', { op: 'step', name: 'hangs', until: '/nowhere' }, 'run'],
  ])('are canceled with a task that %s', async (_, op, kind) => {
    const id = await begin(join(folder, 'canceled'), [op]);
    await until(async () => (await stepsOf(id)).some((step) => step.kind === kind));
    if (kind === 'input') await until(async () => (await taskOf(id)).status.state === WAITS);
    const { result } = await callerOf('stepper').call('CancelTask', { id });
    expect(result!.status.state).toBe('TASK_STATE_CANCELED');
    // The slot is free.
    expect(saidIn((await stepper(join(folder, 'other'), [{ op: 'step', name: 'x' }])).result!.task)).toBe(
      '["x"]',
    );
  });
});

const callerOf = (agent: string): RawCaller => new RawCaller(stack.url(0, agent), token);
const stepper = (file: string, ops: object[]): Promise<RpcAnswer> =>
  callerOf('stepper').call('SendMessage', sendParams(JSON.stringify({ file, ops })));

/** Sends without waiting for the end: the id of the task. */
async function begin(file: string, ops: object[]): Promise<string> {
  const params = sendParams(JSON.stringify({ file, ops }));
  const { result } = await callerOf('stepper').call('SendMessage', {
    ...params,
    configuration: { returnImmediately: true },
  });
  return result!.task.id as string;
}

const read = (id: string, bearer = token): Promise<any> => stack.rest(bearer).task(id);
const taskOf = async (id: string) => (await read(id)).task;
const stepsOf = async (id: string, bearer = token): Promise<any[]> => (await read(id, bearer)).steps;
const saidIn = (task: any): string => task.status.message.parts[0].text as string;

/** The log of a task that has ended, each event as text. */
const eventsOf = async (id: string): Promise<string[]> => (await stack.rest(token).events(id)).split('\n\n');

const linesOf = (file: string): string[] =>
  existsSync(file) ? readFileSync(file, 'utf8').split('\n').filter(Boolean) : [];
const namesIn = (file: string): string[] => linesOf(file).map((line) => line.split(' ')[0] ?? '');
const pidOf = (file: string, name: string): number =>
  Number(
    linesOf(file)
      .findLast((line) => line.startsWith(`${name} `))
      ?.split(' ')[1],
  );
