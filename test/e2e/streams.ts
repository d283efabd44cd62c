import { driversOf } from '../support/nightly.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';

const TASKS = Number(process.env.E2E_STREAMS ?? 50);
const CHUNKS = 20;
const AT_ONCE = 25;
/** Task, working, the chunks, completed. */
const LAST = CHUNKS + 3;

/** What one caller has seen of one stream. */
class Watcher {
  readonly frames: Frame[] = [];
  constructor(private readonly caller: RawCaller) {}

  /** Reads the whole stream, or cuts the connection after `cutAfter` frames. */
  async send(text: string, cutAfter = Infinity): Promise<this> {
    const metadata = { echo: { chunks: CHUNKS, delayMs: 2 } };
    for await (const frame of this.caller.stream('SendStreamingMessage', sendParams(text, { metadata }))) {
      this.frames.push(frame);
      if (this.frames.length >= cutAfter) break;
    }
    return this;
  }

  /** Comes back on another API process, with the id of the last frame it has. */
  async resume(url: string): Promise<this> {
    const last = this.frames.at(-1)!.id;
    for await (const frame of this.caller.at(url).stream('SubscribeToTask', { id: this.taskId }, last)) {
      this.frames.push(frame);
    }
    return this;
  }

  get taskId(): string {
    return this.frames[0]!.data.result!.task.id as string;
  }

  get sequences(): number[] {
    return this.frames.map(({ id }) => id);
  }

  /** The artifact as this caller has put it together. */
  get text(): string {
    const updates = this.frames.flatMap(({ data }) => data.result?.artifactUpdate ?? []);
    return updates.map((update) => update.artifact.parts[0].text as string).join('|');
  }
}

const oneTo = (n: number): number[] => Array.from({ length: n }, (_, i) => i + 1);

describe.each(driversOf('postgres'))('streams over four processes on %s', (driver) => {
  const startStack = shareStack(driver, {}, { apis: 2 });
  let stack: Stack;
  let caller: RawCaller;

  beforeAll(async () => {
    stack = await startStack();
    await stack.addWorker();
    const { token } = await stack.createTenant();
    caller = new RawCaller(stack.url(0), token);
  });
  afterAll(() => stack.killWorkers(stack.workers.slice(1)));

  it('shows every frame exactly once to callers that are cut off and come back on the other API', async () => {
    const watch = async (n: number): Promise<Watcher> => {
      const [home, away] = n % 2 === 0 ? [0, 1] : [1, 0];
      const watcher = new Watcher(caller.at(stack.url(home)));
      if (n % 4 < 2) return watcher.send(`task ${n}`);
      // Any frame may be the last one before the connection breaks, the final one included: each is, in turn.
      await watcher.send(`task ${n}`, 1 + ((Math.floor(n / 4) * 2 + (n % 2)) % LAST));
      return watcher.resume(stack.url(away));
    };
    for (let n = 0; n < TASKS; n += AT_ONCE) {
      const watchers = await Promise.all(oneTo(AT_ONCE).map((i) => watch(n + i)));
      for (const [i, watcher] of watchers.entries()) {
        expect(watcher.sequences).toEqual(oneTo(LAST));
        expect(watcher.text).toBe(
          Array(CHUNKS)
            .fill(`task ${n + i + 1}`)
            .join('|'),
        );
        expect(watcher.frames.at(-1)?.data.result?.statusUpdate.status.state).toBe('TASK_STATE_COMPLETED');
      }
    }
  });

  it('starts a subscription with the task cut at a sequence and sends only later events', async () => {
    /** What a reader gets who comes in the middle; nothing if the machine was too slow for that. */
    const readLate = async (delayMs: number): Promise<Frame[]> => {
      const frames: Frame[] = [];
      const metadata = { echo: { chunks: 10, delayMs } };
      for await (const sent of caller.stream('SendStreamingMessage', sendParams('x', { metadata }))) {
        if (sent.id < 5) continue;
        const id = (await caller.call('ListTasks', { pageSize: 1 })).result!.tasks[0].id as string;
        const late = caller.at(stack.url(1)).stream('SubscribeToTask', { id });
        const isOver = async (error: Error) => {
          if (!error.message.includes('-32004')) throw error;
        };
        await (async () => {
          for await (const frame of late) frames.push(frame);
        })().catch(isOver);
        break;
      }
      return frames;
    };
    let frames: Frame[] = [];
    for (let delayMs = 100; frames.length === 0; delayMs *= 2) frames = await readLate(delayMs);
    const sequences = frames.map(({ id }) => id);
    const chunks = frames.flatMap(({ data }) => {
      const { task, artifactUpdate } = data.result!;
      const artifact = task ? task.artifacts?.[0] : artifactUpdate?.artifact;
      return ((artifact?.parts ?? []) as { text: string }[]).map(({ text }) => text);
    });
    expect(frames[0]?.data.result?.task.artifacts[0].parts.length).toBeGreaterThanOrEqual(3);
    // A chunk that was in the snapshot and came again would make more than ten.
    expect(chunks).toEqual(Array(10).fill('x'));
    expect(sequences).toEqual(oneTo(sequences.length).map((n) => n - 1 + sequences[0]!));
  });

  it('replays the rest to a caller that comes back after the end', async () => {
    const watcher = await new Watcher(caller).send('over', 3);
    await caller.call('GetTask', { id: watcher.taskId });
    await watcher.resume(stack.url(1));
    await watcher.resume(stack.url(0));
    expect(watcher.sequences).toEqual(oneTo(LAST));
  });

  it('goes on with a run whose caller has left', async () => {
    const watcher = await new Watcher(caller).send('left alone', 1);
    const { taskId } = watcher;
    const frames: number[] = [];
    for await (const frame of caller.stream('SubscribeToTask', { id: taskId }, 0)) frames.push(frame.id);
    expect(frames).toEqual(oneTo(LAST));
  });
});
