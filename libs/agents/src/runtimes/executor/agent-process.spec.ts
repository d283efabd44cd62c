import { Logger } from '@baton/telemetry';
import { AgentProcess } from './agent-process.js';

const LOAD_MS = 15_000;
const TICK_MS = 1_000;
const kill = jest.fn();
// A process that never says that its module is loaded.
jest.mock('./agent-child.js', () => ({
  AgentChild: class {
    readonly exited = new Promise<string>(() => undefined);
    readonly kill = kill;
    send(): void {}
    residentMb = async () => 50;
  },
}));

describe('a module that is loading', () => {
  let now = 0;
  beforeEach(() => {
    jest.useFakeTimers({ doNotFake: ['performance'] });
    jest.spyOn(performance, 'now').mockImplementation(() => now);
    kill.mockClear();
    const limits = { memoryMb: 256, maxEventBytes: 1_000, stallMs: 3_600_000, loadMs: LOAD_MS };
    const process = new AgentProcess({ ...limits, agent: 'slow', env: {}, logger: Logger.silent() });
    void process.load({ folder: '/nowhere' });
  });
  afterEach(() => {
    jest.useRealTimers();
    jest.restoreAllMocks();
  });

  /** One tick, which is late by so many ms. */
  async function tick(lateMs = 0): Promise<void> {
    now += TICK_MS + lateMs;
    await jest.advanceTimersByTimeAsync(TICK_MS);
  }

  it('is given up when its time is over', async () => {
    for (let ms = 0; ms < LOAD_MS; ms += TICK_MS) await tick();
    expect(kill).not.toHaveBeenCalled();
    await tick();
    expect(kill).toHaveBeenCalledTimes(1);
  });

  it('is not given up because the whole machine stood still', async () => {
    await tick(10 * LOAD_MS);
    await tick(10 * LOAD_MS);
    expect(kill).not.toHaveBeenCalled();
  });
});
