import { type EventPayload, type TaskEvent, TaskState, serializePayload } from '@baton/a2a';
import { NO_LIMITS } from '@baton/config';
import type { AppendBatch, AppendResult, ClaimedRun } from '@baton/database';
import type { PushJob, TaskSignal } from '@baton/messaging';
import { Metrics, Tracing } from '@baton/telemetry';
import { artifact, claimedRun } from './claimed-run.fixture.js';
import { EventAllowance, type EventLimits } from './event-allowance.js';
import { TurnFailure } from '../core/turn-failure.js';
import { AppendRefused } from '../core/append-refused.js';
import { EventWriter, writerMetrics } from './event-writer.js';

const chunk = (text: string): EventPayload => ({
  $case: 'artifactUpdate',
  value: {
    taskId: 'task',
    contextId: 'context',
    artifact: artifact('a', text),
    append: true,
    lastChunk: false,
    metadata: undefined,
  },
});
const status = (state: TaskState): EventPayload => ({
  $case: 'statusUpdate',
  value: {
    taskId: 'task',
    contextId: 'context',
    status: { state, message: undefined, timestamp: undefined },
    metadata: undefined,
  },
});
const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_WORKING: WORKING } = TaskState;
const lostConnection = () => Object.assign(new Error('terminated'), { code: '57P01' });

/** Postgres and the channel, as far as a writer sees them, in the order in which things happened. */
class FakePorts {
  readonly trace: string[] = [];
  readonly log: TaskEvent[] = [];
  readonly signals: TaskSignal[] = [];
  readonly pushes: PushJob[] = [];
  hasPushConfigs = false;
  refused = 0;
  answer: (batch: AppendBatch) => Promise<AppendResult> = async (batch) => this.commit(batch);

  readonly runs = { append: (_key: unknown, batch: AppendBatch) => this.answer(batch) };
  readonly tasks = {
    readEvents: async (_t: string, _k: string, after: number) => this.log.filter((e) => e.sequence > after),
  };
  readonly messaging = {
    publishTask: async (_t: string, _k: string, signal: TaskSignal) => {
      this.trace.push(`publish ${signal.lastSequence}`);
      this.signals.push(signal);
    },
    enqueuePushes: async (jobs: readonly PushJob[]) => void this.pushes.push(...jobs),
  };
  readonly counted = new Metrics();
  readonly metrics = writerMetrics(this.counted);
  readonly tracing = new Tracing();
  readonly onFailure = () => void (this.refused += 1);

  commit(batch: AppendBatch): AppendResult {
    const head = this.log.at(-1)?.sequence ?? 2;
    if (batch.afterSequence !== head) return { ok: false };
    this.trace.push(`commit ${batch.events.length}`);
    batch.events.forEach(({ payload }, i) => this.log.push({ sequence: head + 1 + i, attempt: 1, payload }));
    return { ok: true, firstSequence: head + 1, hasPushConfigs: this.hasPushConfigs };
  }
}

describe('EventWriter', () => {
  let ports: FakePorts;
  let writer: EventWriter;
  beforeEach(() => {
    ports = new FakePorts();
    writer = new EventWriter(claimedRun(), ports);
  });

  it('appends what gathers as one batch, together with the end', async () => {
    await writer.write(chunk('a'));
    await writer.write(chunk('b'));
    await writer.end(status(COMPLETED), { state: COMPLETED, outcome: null });
    expect(ports.trace).toEqual(['commit 3', 'publish 5']);
    expect(ports.signals[0]?.events.map(({ sequence }) => sequence)).toEqual([3, 4, 5]);
  });

  it('counts the events, and measures each batch once, to the log', async () => {
    await writer.write(chunk('a'));
    await writer.write(chunk('b'));
    await writer.write(status(WORKING));
    await writer.end(status(COMPLETED), { state: COMPLETED, outcome: null });
    const batches = ports.trace.filter((line) => line.startsWith('commit'));
    const { body } = await ports.counted.render();
    expect(body).toMatch(/^baton_events_appended_total 4$/m);
    expect(body).toMatch(new RegExp(`^baton_event_append_seconds_count ${batches.length}$`, 'm'));
    expect(batches).toEqual(['commit 3', 'commit 1']);
  });

  it('wakes push notifications after each batch, if the task has some, and waits for no queue', async () => {
    await writer.write(status(WORKING));
    expect(ports.pushes).toEqual([]);
    ports.hasPushConfigs = true;
    ports.messaging.enqueuePushes = (jobs) => {
      ports.pushes.push(...jobs);
      ports.trace.push('wake');
      return new Promise(() => undefined);
    };
    await writer.end(status(COMPLETED), { state: COMPLETED, outcome: null });
    expect(ports.pushes).toEqual([{ tenantId: 'tenant', taskId: 'task' }]);
    expect(ports.trace).toEqual(['commit 1', 'publish 3', 'commit 1', 'wake', 'publish 4']);
  });

  it('has the outcome with the end only if the task has no metadata beside its events', async () => {
    const outcomes: unknown[] = [];
    for (const metadata of [undefined, { cost: 1 }]) {
      ports = new FakePorts();
      writer = new EventWriter(claimedRun(), ports);
      if (metadata) writer.mergeMetadata(metadata);
      await writer.write(chunk('a'));
      await writer.end(status(COMPLETED), { state: COMPLETED, outcome: null });
      outcomes.push(ports.signals.at(-1)?.events.map(({ outcome }) => outcome));
    }
    expect(outcomes).toEqual([
      [undefined, 'none'],
      [undefined, undefined],
    ]);
  });

  it.each<[string, Partial<ClaimedRun>, boolean[]]>([
    ['the first attempt of a task', {}, [true, false]],
    ['the first attempt of a later turn', { startSequence: 5 }, [false, false]],
    ['a later attempt', { attempt: 2 }, [false, false]],
  ])('knows of a new artifact in %s alone that it is new', async (_, run, isFirst) => {
    const seen: (boolean | undefined)[] = [];
    ports.answer = async (batch) => {
      seen.push(...batch.events.map((event) => event.isFirst));
      return ports.commit(batch);
    };
    writer = new EventWriter(claimedRun(run), ports);
    await writer.write(chunk('a'));
    await writer.write(chunk('b'));
    await writer.flush();
    expect(seen).toEqual(isFirst);
  });

  it('hands over the folded artifacts with the end', async () => {
    let end: AppendBatch['end'];
    ports.answer = async (batch) => {
      end = batch.end;
      return ports.commit(batch);
    };
    await writer.write(chunk('a'));
    await writer.write(chunk('b'));
    await writer.end(status(COMPLETED), { state: COMPLETED, outcome: null });
    expect(end?.artifacts).toHaveLength(1);
    expect(end?.artifacts?.[0]?.parts).toHaveLength(2);
  });

  it('marks the end of the turn when the last event goes out with a batch that was already under way', async () => {
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    const ends: (TaskState | undefined)[] = [];
    ports.answer = async (batch) => {
      await gate;
      ends.push(batch.end?.state);
      return ports.commit(batch);
    };
    const first = writer.write(status(WORKING));
    await writer.write(chunk('a'));
    const flushed = writer.flush();
    const ended = writer.end(status(COMPLETED), { state: COMPLETED, outcome: null });
    open();
    await Promise.all([first, flushed, ended]);
    expect(ports.trace.filter((line) => line.startsWith('commit'))).toEqual(['commit 2', 'commit 1']);
    expect(ends).toEqual([undefined, COMPLETED]);
  });

  it('appends a status at once', async () => {
    await writer.write(status(WORKING));
    expect(ports.trace).toEqual(['commit 1', 'publish 3']);
  });

  it('publishes nothing that was not committed (invariant 3)', async () => {
    ports.answer = async () => ({ ok: false });
    await expect(writer.write(status(WORKING))).rejects.toThrow(AppendRefused);
    expect(ports.signals).toEqual([]);
    expect(ports.refused).toBe(1);
    await expect(writer.write(chunk('late'))).rejects.toThrow(AppendRefused);
  });

  it('keeps a full batch waiting until it is in the log', async () => {
    let open = (): void => undefined;
    const gate = new Promise<void>((resolve) => (open = resolve));
    ports.answer = async (batch) => {
      await gate;
      return ports.commit(batch);
    };
    let done = false;
    const big = writer.write(chunk('x'.repeat(70_000))).then(() => (done = true));
    await Promise.resolve();
    expect(done).toBe(false);
    open();
    await big;
    expect(ports.trace).toEqual(['commit 1', 'publish 3']);
  });

  it('writes a batch once when the connection is lost after its commit', async () => {
    let calls = 0;
    ports.answer = async (batch) => {
      calls += 1;
      const result = ports.commit(batch);
      if (calls === 1) throw lostConnection();
      return result;
    };
    await writer.write(status(WORKING));
    expect(ports.log).toHaveLength(1);
    expect(ports.trace).toEqual(['commit 1', 'publish 3']);
  });

  it('tries again when the connection is lost before the commit', async () => {
    let calls = 0;
    ports.answer = async (batch) => {
      calls += 1;
      if (calls === 1) throw lostConnection();
      return ports.commit(batch);
    };
    await writer.write(status(WORKING));
    expect(ports.trace).toEqual(['commit 1', 'publish 3']);
  });

  it('is refused when the connection is lost before the commit, and another attempt has appended meanwhile', async () => {
    let calls = 0;
    ports.answer = async (batch) => {
      calls += 1;
      if (calls > 1) return ports.commit(batch);
      ports.log.push({ sequence: 3, attempt: 2, payload: status(WORKING) });
      throw lostConnection();
    };
    await expect(writer.write(status(WORKING))).rejects.toThrow(AppendRefused);
    expect([ports.trace, ports.refused]).toEqual([[], 1]);
  });

  it('drops events that were not appended when the run is stopped', async () => {
    await writer.write(chunk('a'));
    writer.discard();
    await expect(writer.flush()).rejects.toThrow(AppendRefused);
    expect(ports.trace).toEqual([]);
  });

  it('rejects the output that the log cannot store, and all that follows; the platform still ends the turn', async () => {
    const refusal = Object.assign(new Error('value too large'), { code: '54000' });
    let tries = 0;
    ports.answer = async (batch) => {
      tries += 1;
      if (batch.end === undefined) throw refusal;
      return ports.commit(batch);
    };
    const failure = new Promise((resolve) => {
      writer.refusal.addEventListener('abort', () => resolve(writer.refusal.reason));
    });
    // The caller does not wait for this one. It joins a later batch.
    await writer.write(chunk('a'));
    expect(await failure).toMatchObject({
      message: 'The agent sent something that cannot be stored',
      cause: refusal,
    });
    expect(await failure).toBeInstanceOf(TurnFailure);
    await expect(writer.write(chunk('b'))).rejects.toBeInstanceOf(TurnFailure);
    const end = { state: TaskState.TASK_STATE_FAILED, outcome: null, error: 'value too large' };
    await writer.end(status(TaskState.TASK_STATE_FAILED), end);
    expect([tries, ports.trace, ports.refused]).toEqual([2, ['commit 1', 'publish 3'], 0]);
  });

  it('does not wait for a server that takes no signals', async () => {
    let answer = (): void => undefined;
    const hanging = new Promise<void>((resolve) => (answer = resolve));
    ports.messaging.publishTask = async (_t: string, _k: string, { lastSequence }: TaskSignal) => {
      ports.trace.push(`publish ${lastSequence}`);
      return hanging;
    };
    await writer.write(status(WORKING));
    await writer.write(status(WORKING));
    await writer.end(status(COMPLETED), { state: COMPLETED, outcome: null });
    expect(ports.trace.filter((line) => line.startsWith('commit'))).toHaveLength(3);
    answer();
  });

  describe('limits of the tenant', () => {
    const limited = (limits: Partial<EventLimits>, logged = { events: 2, bytes: 0 }) => {
      const ports = new FakePorts();
      const writer = new EventWriter(claimedRun(), ports);
      writer.allow(new EventAllowance({ ...NO_LIMITS, ...limits }, logged));
      return { ports, writer };
    };
    const failed = { state: TaskState.TASK_STATE_FAILED, outcome: null, error: 'over a limit' };

    it('let exactly as many events into the log, and then only the platform’s word', async () => {
      const { ports, writer } = limited({ eventsPerRun: 3 });
      await Promise.all(['a', 'b', 'c'].map((text) => writer.write(chunk(text))));
      await expect(writer.write(chunk('d'))).rejects.toThrow(
        new TurnFailure(
          'The agent sent more events than the limit eventsPerRun of this tenant allows, which is 3',
        ),
      );
      await writer.end(status(TaskState.TASK_STATE_FAILED), failed);
      expect(ports.trace).toEqual(['commit 4', 'publish 6']);
    });

    it('count the agent’s last word as well', async () => {
      const { ports, writer } = limited({ eventsPerRun: 2 });
      await writer.write(status(WORKING));
      await writer.write(status(WORKING));
      const end = writer.end(status(COMPLETED), { state: COMPLETED, outcome: null });
      await expect(end).rejects.toMatchObject({ limit: 'eventsPerRun' });
      expect(ports.log).toHaveLength(2);
    });

    it('measure an event as it is stored, of whatever kind it is', async () => {
      const bytes = Buffer.byteLength(serializePayload(chunk('äöü')));
      const { ports, writer } = limited({ eventBytes: bytes });
      await writer.write(chunk('äöü'));
      await expect(writer.write(chunk('äöü!'))).rejects.toThrow(
        `The agent sent an event of ${bytes + 1} bytes, and the limit eventBytes of this tenant is ${bytes}`,
      );
      await writer.end(status(TaskState.TASK_STATE_FAILED), failed);
      expect(ports.log).toHaveLength(2);
    });

    it('count the bytes of a run', async () => {
      const bytes = Buffer.byteLength(serializePayload(chunk('a')));
      const { writer } = limited({ bytesPerRun: 3 * bytes });
      await Promise.all(['a', 'b', 'c'].map((text) => writer.write(chunk(text))));
      await expect(writer.write(chunk('d'))).rejects.toThrow(
        `The agent sent more bytes than the limit bytesPerRun of this tenant allows, which is ${3 * bytes}`,
      );
    });

    it('count all that is in the log of a task, of every attempt', async () => {
      const logged = { events: 9, bytes: 100_000 };
      const events = limited({ eventsPerTask: 10 }, logged).writer;
      await events.write(chunk('a'));
      await expect(events.write(chunk('b'))).rejects.toThrow(
        'The task has more events than the limit eventsPerTask of this tenant allows, which is 10; begin a new task',
      );
      await expect(limited({ bytesPerTask: 100_001 }, logged).writer.write(chunk('a'))).rejects.toMatchObject(
        {
          limit: 'bytesPerTask',
        },
      );
    });

    it('do not apply to content that the platform repeats', async () => {
      const { writer } = limited({ eventsPerRun: 1 });
      await writer.write(chunk('a'), false);
      await writer.write(chunk('b'), false);
      await writer.write(chunk('c'));
      await expect(writer.write(chunk('d'))).rejects.toMatchObject({ limit: 'eventsPerRun' });
    });
  });
});
