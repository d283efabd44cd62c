import { type BatonProcess, startProcess } from '../support/baton-process.js';
import { createDatabase, type TestDatabase } from '../support/index.js';
import { MachineClock } from '../support/machine-clock.js';
import { NIGHTLY, nightlyIt } from '../support/nightly.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { insertTenant, insertToken } from '../support/tenants.js';
import { waitUntil } from '../../apps/local/src/services/service-process.js';

const HOUR_MS = 3_600_000;
/** More than the clocks of a test may differ by. */
const ACCURACY_MS = 5_000;

describe('a machine whose clock is wrong', () => {
  let database: TestDatabase;
  let tokens: { expired: string; good: string };
  const running: BatonProcess[] = [];

  beforeAll(async () => {
    database = await createDatabase();
    await insertTenant(database.url, 'clocks');
    const token = (endsInMs: number): Promise<string> =>
      insertToken(database.url, 'clocks', [], new Date(Date.now() + endsInMs));
    tokens = { expired: await token(-HOUR_MS), good: await token(HOUR_MS) };
  });

  afterEach(async () => {
    await Promise.all(running.splice(0).map((process) => process.stop()));
  });
  afterAll(() => database.drop());

  const start = async (clock: MachineClock, env: Record<string, string> = {}): Promise<BatonProcess> => {
    const all = { DATABASE_URL: database.url, REDIS_URL: '', ...clock.env, ...env };
    const [api, worker] = await Promise.all([startProcess('api', all), startProcess('worker', all)]);
    running.push(api, worker);
    return api;
  };
  const status = async (api: BatonProcess, token: string): Promise<number> =>
    (await fetch(`${api.url}/v1/whoami`, { headers: { authorization: `Bearer ${token}` } })).status;
  const warnings = async (api: BatonProcess): Promise<string> => {
    const answer = await fetch(`${api.managementUrl}/readyz`);
    return ((await answer.json()) as { warnings: string[] }).warnings.join();
  };
  const offset = async (api: BatonProcess): Promise<number> => {
    const text = await (await fetch(`${api.managementUrl}/metrics`)).text();
    return Number(/^baton_clock_offset_seconds (\S+)$/m.exec(text)?.[1]);
  };
  /** Tokens end when they should, and status times are true. */
  const expectTrueTimes = async (api: BatonProcess): Promise<void> => {
    expect([await status(api, tokens.expired), await status(api, tokens.good)]).toEqual([401, 200]);
    const sent = Date.now();
    const caller = new RawCaller(`${api.url}/agents/echo`, tokens.good);
    const { result } = await caller.call('SendMessage', sendParams('Hello'));
    const task = result?.task as { status: { state: string; timestamp: string } };
    expect(task.status.state).toBe('TASK_STATE_COMPLETED');
    expect(Math.abs(Date.parse(task.status.timestamp) - sent)).toBeLessThan(ACCURACY_MS + Date.now() - sent);
  };

  const ways: [string, number][] = [
    ['ahead of', 2 * HOUR_MS],
    ['behind', -2 * HOUR_MS],
  ];
  it.each(NIGHTLY ? ways : ways.slice(0, 1))(
    'does not start two hours %s Postgres, unless the operator allows it',
    async (way, offsetMs) => {
      const clock = new MachineClock(offsetMs);
      for (const kind of ['api', 'worker'] as const) {
        const refused = startProcess(kind, { DATABASE_URL: database.url, ...clock.env });
        await expect(refused).rejects.toThrow(
          new RegExp(
            `could not start: The clock of this machine is 7(200|199)\\.\\d s ${way} that of Postgres: let NTP set`,
          ),
        );
      }
      const api = await start(clock, { MAX_CLOCK_OFFSET_MS: '86400000' });
      expect(await warnings(api)).toContain(`s ${way} that of Postgres`);
      expect(Math.abs((await offset(api)) - offsetMs / 1000)).toBeLessThan(5);
      await expectTrueTimes(api);
    },
  );

  nightlyIt('keeps to true times when it jumps, and logs the jump and its end', async () => {
    const clock = new MachineClock();
    const api = await start(clock);
    await expectTrueTimes(api);
    expect(await warnings(api)).toBe('');
    for (const jumpMs of [2 * HOUR_MS, -2 * HOUR_MS]) {
      clock.set(jumpMs);
      const isTold = async (): Promise<boolean> =>
        Math.abs((await offset(api)) - jumpMs / 1000) < 5 &&
        (await warnings(api)).includes(`s ${jumpMs > 0 ? 'ahead of' : 'behind'} that of Postgres`);
      expect(await waitUntil(isTold, Infinity)).toBe(true);
      await expectTrueTimes(api);
    }
    expect(await waitUntil(() => api.log().includes('the clock of this machine is wrong'), Infinity)).toBe(
      true,
    );
    clock.set(0);
    expect(await waitUntil(() => api.log().includes('agrees with that of Postgres again'), Infinity)).toBe(
      true,
    );
    expect(Math.abs(await offset(api))).toBeLessThan(1);
    await expectTrueTimes(api);
  });
});
