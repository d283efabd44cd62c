import { Receiver } from '../../libs/tasks/src/push/receiver.fixture.js';
import { CRASH_SETTINGS } from '../support/crash-settings.js';
import { driversOf, nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY, shareStack } from '../support/shared-stack.js';
import type { Stack, TestTenant } from '../support/stack.js';
import { until } from '../support/until.js';

/** Seconds, in hours. */
const seconds = (count: number): number => count / 3_600;

describe.each(driversOf('postgres'))('a task that waits for a person, on %s', (driver) => {
  const startStack = shareStack(driver, {
    OUTBOUND_ALLOW: '127.0.0.1',
    BATON_MASTER_KEY: MASTER_KEY,
    ...CRASH_SETTINGS,
  });
  let stack: Stack;
  let tenant: TestTenant;
  let hook: Receiver;

  beforeAll(async () => {
    stack = await startStack();
  });
  beforeEach(async () => {
    tenant = await stack.createTenant('admin');
    hook = await Receiver.start();
  });
  afterEach(() => hook.close());

  const post = (path: string, body: object): Promise<unknown> =>
    stack.rest(tenant.token).write('POST', `/v1/${path}`, body);

  async function createAgent(reminders: object): Promise<RawCaller> {
    const agent = { slug: 'asker', name: 'Asker', description: 'Asks.', runtime: 'echo', reminders };
    await post('agents', agent);
    return new RawCaller(stack.url(0, 'asker'), tenant.token);
  }
  async function ask(caller: RawCaller): Promise<string> {
    const params = sendParams('Which city?', { metadata: { echo: { askInput: true } } });
    const { result } = await caller.call('SendMessage', params);
    return (result as { task: { id: string } }).task.id;
  }
  /** What the API shows of the reminders of a task. */
  async function shown(
    taskId: string,
  ): Promise<{ kind: string; sent_at: string | null; webhooks: number }[]> {
    return (await stack.rest(tenant.token).task(taskId)).reminders ?? [];
  }
  async function untilSent(taskId: string, kind: string): Promise<void> {
    const isSent = (each: { kind: string; sent_at: string | null; webhooks: number }): boolean =>
      each.kind === kind && each.sent_at !== null && each.webhooks === 1;
    await until(async () => (await shown(taskId)).some(isSent));
  }
  const dataOf = ({ json }: Receiver['received'][number]) => json.data as Record<string, unknown>;
  /** The notices of the receiver, such as `input-required` or `input-required reminder`. */
  const received = (taskId: string): string[] =>
    hook.received
      .filter((received) => dataOf(received).task_id === taskId)
      .map((received) => {
        const { state, reminder } = dataOf(received);
        const kind = received.json.type === 'task.escalation' ? ' escalation' : '';
        return `${String(state)}${reminder === true ? ' reminder' : ''}${kind}`;
      });
  async function untilReceived(taskId: string, what: string): Promise<void> {
    while (!received(taskId).includes(what)) await hook.reach(hook.received.length + 1);
  }
  /** A `kill -9` of the worker, and a queue that has lost everything. */
  async function crash(): Promise<void> {
    await stack.killWorkers();
    await stack.redis?.flush();
    await stack.addWorker();
  }

  nightlyIt(
    'is reminded of once, and escalated once, although workers die and the queue is lost',
    async () => {
      await post('webhooks', { url: hook.url });
      // A webhook of a killed worker is free after its lease of 15 seconds, and a reminder that is later than the escalation is not sent.
      const caller = await createAgent({ remindAfterHours: seconds(3), escalateAfterHours: seconds(45) });
      const taskId = await ask(caller);
      await untilReceived(taskId, 'input-required');
      await crash();
      await untilReceived(taskId, 'input-required reminder');
      await untilSent(taskId, 'reminder');
      await crash();
      await untilReceived(taskId, 'input-required escalation');
      await untilSent(taskId, 'escalation');
      await crash();
      // Later events show that nothing came twice.
      await caller.call('SendMessage', sendParams('Basel', { taskId }));
      await untilReceived(taskId, 'completed');
      expect(received(taskId).filter((each) => / /.test(each))).toEqual([
        'input-required reminder',
        'input-required escalation',
      ]);
      const data = {
        task_id: taskId,
        agent: 'asker',
        state: 'input-required',
        waiting_since: expect.any(String),
        answer_url: expect.stringMatching(new RegExp(`^http://.*/console/tasks/${taskId}$`)),
      };
      const question = hook.received.find((received) => dataOf(received).state === 'input-required');
      expect(dataOf(question!).answer_url).toEqual(data.answer_url);
      expect(dataOf(hook.received.at(-1)!)).toMatchObject({ state: 'completed' });
      expect(dataOf(hook.received.at(-1)!)).not.toHaveProperty('answer_url');
      const [reminder, escalation] = hook.received.filter((received) => 'waiting_since' in dataOf(received));
      expect(reminder!.json).toMatchObject({ type: 'task.state_changed', data: { ...data, reminder: true } });
      expect(escalation!.json).toMatchObject({ type: 'task.escalation', data });
      expect(reminder!.headers['webhook-id']).not.toBe(escalation!.headers['webhook-id']);
    },
  );

  it('is not spoken of again after its answer', async () => {
    await post('webhooks', { url: hook.url, states: ['input-required'] });
    const caller = await createAgent({ remindAfterHours: seconds(3) });
    const answered = await ask(caller);
    await caller.call('SendMessage', sendParams('Basel', { taskId: answered }));
    const waiting = await ask(caller);
    await untilReceived(waiting, 'input-required reminder');
    expect(received(answered)).toEqual(['input-required']);
  });
});
