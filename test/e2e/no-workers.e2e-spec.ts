import { DRIVERS } from '../support/index.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';
import { until } from '../support/until.js';

const WARNING = expect.stringContaining('no worker is alive') as string;

// Postgres says which workers live: messaging has no part in it.
describe('an API without any worker', () => {
  let stack: Stack;
  let token: string;
  beforeAll(async () => {
    stack = await Stack.start({
      driver: DRIVERS[0]!,
      workers: 0,
      env: { SEND_WAIT_MS: '1000', LEASE_MS: '8000' },
    });
    ({ token } = await stack.createTenant());
  });
  afterAll(() => stack.stop());

  const get = async (path: string) => {
    const response = await fetch(stack.apis[0]!.managementUrl + path);
    return { status: response.status, text: await response.text() };
  };
  const warnings = async () => {
    const { status, text } = await get('/readyz');
    return [status, (JSON.parse(text) as { warnings: string[] }).warnings] as const;
  };
  const metric = async (name: string): Promise<number> => {
    const { text } = await get('/metrics');
    return Number(text.match(new RegExp(`^${name} (.*)$`, 'm'))?.[1]);
  };
  const logged = (text: string): number => stack.apis[0]!.log().split(text).length - 1;

  it('answers a blocking send with the task as it is, and reports everywhere that there is no worker', async () => {
    const [now, before] = await Promise.all([
      new RawCaller(stack.url(0), token).call('SendMessage', sendParams('x')),
      new RawCaller(stack.url(0), token, '0.3').call('message/send', {
        message: { kind: 'message', messageId: 'm', role: 'user', parts: [{ kind: 'text', text: 'y' }] },
      }),
    ]);
    expect(now.result?.task.status.state).toBe('TASK_STATE_SUBMITTED');
    expect(before.result?.status.state).toBe('submitted');
    expect(await warnings()).toEqual([200, [WARNING]]);
    expect(await metric('baton_live_workers')).toBe(0);
    // An answer is kept for a second.
    await until(async () => (await metric('baton_oldest_waiting_run_seconds')) > 0.9);
    await until(() => logged('no worker is alive') > 0);

    const id = now.result?.task.id as string;
    const worker = await stack.addWorker();
    await until(async () => (await warnings())[1].length === 0);
    await until(() => logged('workers are alive again') > 0);
    expect([logged('no worker is alive'), logged('workers are alive again')]).toEqual([1, 1]);
    expect(await metric('baton_live_workers')).toBe(1);
    const caller = new RawCaller(stack.url(0), token);
    const done = async (): Promise<boolean> => {
      const { result } = await caller.call('GetTask', { id });
      return result?.status.state === 'TASK_STATE_COMPLETED';
    };
    await until(done);
    await until(async () => (await metric('baton_oldest_waiting_run_seconds')) === 0);
    await worker.kill();
    // The lease of the worker ends after eight seconds.
    await until(async () => (await warnings())[1].length === 1, 250);
  });
});
