import { type RunningProcess, type Supervised, Supervisor } from './supervisor.js';

/** A process of which a test decides when it ends. */
class Fake implements RunningProcess {
  end: (reason: string) => void = () => undefined;
  readonly exited = new Promise<string>((resolve) => (this.end = resolve));
  kill = (): void => this.end('killed');
  stop = (): Promise<void> => {
    this.end('asked to');
    return Promise.resolve();
  };
}

describe('supervisor', () => {
  const setUp = (start: () => Promise<RunningProcess>) => {
    const said: string[] = [];
    const changed = new EventTarget();
    const note = (line: string): void => {
      said.push(line);
      changed.dispatchEvent(new Event('said'));
    };
    const process: Supervised = { title: 'Worker 1', start, stopTimeoutMs: 10 };
    const events = { say: note, giveUp: (line: string) => note(`giving up: ${line}`), backoffMs: () => 0 };
    const says = async (part: string): Promise<void> => {
      while (!said.some((line) => line.includes(part))) {
        await new Promise((resolve) => changed.addEventListener('said', resolve, { once: true }));
      }
    };
    return { supervisor: new Supervisor(process, events), said, says };
  };

  it('restarts a process that ended, and logs the reason', async () => {
    const fakes = [new Fake(), new Fake()];
    const queue = [...fakes];
    const { supervisor, said, says } = setUp(() => Promise.resolve(queue.shift() ?? new Fake()));
    await supervisor.start();
    fakes[0]?.end('exit code 3');
    await says('is back');
    expect(said).toEqual(['Worker 1 ended (exit code 3). It is started again in 0 s.', 'Worker 1 is back.']);
    await supervisor.stop();
    expect(said).toHaveLength(2);
  });

  it('gives up what fails again and again', async () => {
    const first = new Fake();
    const queue: RunningProcess[] = [first];
    const start = () => {
      const next = queue.shift();
      return next ? Promise.resolve(next) : Promise.reject(new Error('no such file'));
    };
    const { supervisor, said, says } = setUp(start);
    await supervisor.start();
    first.end('exit code 1');
    await says('giving up');
    expect(said.at(-1)).toBe(
      'giving up: Worker 1 could not be started (no such file), for the 6th time in a row.',
    );
    expect(said).toHaveLength(6);
  });

  it('rejects when it does not come up the first time, and does not try again', async () => {
    const { supervisor, said } = setUp(() => Promise.reject(new Error('no such file')));
    await expect(supervisor.start()).rejects.toThrow('no such file');
    expect(said).toEqual([]);
  });

  it('leaves nothing behind that comes up while it is being stopped', async () => {
    const fake = new Fake();
    let up: () => void = () => undefined;
    const { supervisor } = setUp(() => new Promise((resolve) => (up = () => resolve(fake))));
    const started = supervisor.start();
    const stopped = supervisor.stop();
    up();
    await Promise.all([started, stopped]);
    expect(await fake.exited).toBe('asked to');
  });
});
