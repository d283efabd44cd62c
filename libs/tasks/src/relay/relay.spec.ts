import { type TaskEvent, TaskState, serializePayload } from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import type { TaskStore } from '@baton/database';
import type { Messaging, Subscription, TaskSignal } from '@baton/messaging';
import { Logger, Metrics } from '@baton/telemetry';
import { randomUUID } from 'node:crypto';
import { Relay } from './relay.js';

const { TASK_STATE_WORKING, TASK_STATE_COMPLETED } = TaskState;
/** A reader that gets nothing fails its test after this time. */
const TEST_MS = 15_000;

/** Messaging whose connection the test loses, and whose signals the test sends or leaves out. */
class FakeMessaging {
  reconnected: () => void = () => undefined;
  inForce: Promise<void> = Promise.resolve();
  private readonly listeners = new Map<string, (signal: TaskSignal) => void>();

  onSignalsMissed(listener: () => void) {
    this.reconnected = listener;
    return () => undefined;
  }

  subscribeTask(_tenantId: string, taskId: string, listener: (signal: TaskSignal) => void): Subscription {
    this.listeners.set(taskId, listener);
    return { inForce: this.inForce, end: () => void this.listeners.delete(taskId) };
  }

  get subscribed(): number {
    return this.listeners.size;
  }

  signal(taskId: string, events: TaskEvent[]): void {
    this.listeners.get(taskId)?.({
      lastSequence: events.at(-1)?.sequence ?? 0,
      events: events.map(({ sequence, attempt, payload }) => {
        return { sequence, attempt, json: serializePayload(payload) };
      }),
    });
  }
}

/** Logs in memory. It notes who reads. */
class FakeTasks {
  readonly reads: string[] = [];
  private readonly logs = new Map<string, TaskEvent[]>();

  /** The events that it appends. */
  append(taskId: string, ...states: TaskState[]): TaskEvent[] {
    return this.appendAt(undefined, taskId, ...states);
  }

  /** The same, said at this time. */
  appendAt(timestamp: string | undefined, taskId: string, ...states: TaskState[]): TaskEvent[] {
    const log = this.logs.get(taskId) ?? [];
    this.logs.set(taskId, log);
    return states.map((state) => {
      const status = { state, message: undefined, timestamp };
      const value = { taskId, contextId: taskId, status, metadata: undefined };
      const event: TaskEvent = {
        sequence: log.length + 1,
        attempt: 1,
        payload: { $case: 'statusUpdate', value },
      };
      log.push(event);
      return event;
    });
  }

  heads = async (keys: readonly { taskId: string }[]): Promise<Map<string, number>> =>
    new Map(keys.map(({ taskId }) => [taskId, this.logs.get(taskId)?.length ?? 0]));

  readPage = async ({ taskId }: { taskId: string }, after: number) => {
    this.reads.push(taskId);
    const events = this.logs.get(taskId)?.slice(after) ?? [];
    return {
      events: events.map((event) => ({ ...event, json: serializePayload(event.payload) })),
      more: false,
    };
  };
}

describe('the relay', () => {
  let messaging: FakeMessaging;
  let tasks: FakeTasks;
  let relay: Relay;
  let metrics: Metrics;
  let end: AbortController;

  beforeEach(() => {
    messaging = new FakeMessaging();
    tasks = new FakeTasks();
    metrics = new Metrics();
    end = new AbortController();
    // The slow tick does not help.
    const environment = loadEnvironment({
      DATABASE_URL: 'postgres://nobody@127.0.0.1:1/none',
      RELAY_TICK_MS: '3600000',
    });
    relay = new Relay(
      tasks as unknown as TaskStore,
      messaging as unknown as Messaging,
      environment,
      Logger.silent(),
      metrics,
    );
    relay.onModuleInit();
  });
  afterEach(() => {
    jest.restoreAllMocks();
    end.abort();
    relay.onModuleDestroy();
  });

  /** Follow a task whose log ends at `head`; resolves with the sequences that its reader gets. */
  async function follow(taskId: string, head: number): Promise<Promise<number[]>[]> {
    const watch = await relay.watch({ tenantId: 'tenant', taskId, holder: 'tenant' }, head, head, end.signal);
    const sequences = async (): Promise<number[]> => {
      const seen: number[] = [];
      for await (const events of watch.events()) seen.push(...events.map(({ sequence }) => sequence));
      return seen;
    };
    return [sequences()];
  }

  it('compares the watched logs again after an outage until Postgres answers', async () => {
    let tries = 0;
    let compared: () => void = () => undefined;
    const isCompared = new Promise<void>((resolve) => (compared = resolve));
    tasks.heads = async () => {
      tries += 1;
      if (tries < 3) throw new Error('terminating connection');
      compared();
      return new Map();
    };
    await relay.watch({ tenantId: randomUUID(), taskId: randomUUID(), holder: 'tenant' }, 0, 0, end.signal);
    messaging.reconnected();
    await isCompared;
    expect(tries).toBe(3);
  });

  it(
    'compares again after a comparison that may have read the heads before the outage was over',
    async () => {
      jest.spyOn(Math, 'random').mockReturnValue(0);
      let begun = (): void => undefined;
      let release = (): void => undefined;
      let compared = (): void => undefined;
      const isBegun = new Promise<void>((resolve) => (begun = resolve));
      const isReleased = new Promise<void>((resolve) => (release = resolve));
      const isComparedAgain = new Promise<void>((resolve) => (compared = resolve));
      let tries = 0;
      tasks.heads = async () => {
        tries += 1;
        if (tries === 2) compared();
        begun();
        await isReleased;
        return new Map();
      };
      await relay.watch({ tenantId: 'tenant', taskId: 'task', holder: 'tenant' }, 0, 0, end.signal);
      messaging.reconnected();
      await isBegun;
      messaging.reconnected();
      // After the pause of the second catch-up, whose timer is older.
      await new Promise((resolve) => setTimeout(resolve, 0));
      release();
      await isComparedAgain;
      expect(tries).toBe(2);
    },
    TEST_MS,
  );

  it('keeps nothing of a call that ends while messaging is away', async () => {
    messaging.inForce = new Promise(() => undefined);
    const watching = relay.watch({ tenantId: 'tenant', taskId: 'task', holder: 'tenant' }, 0, 0, end.signal);
    expect(messaging.subscribed).toBe(1);
    end.abort();
    expect([messaging.subscribed, relay.size]).toEqual([0, 0]);
    await watching;
  });

  it(
    'gives a reader what it has missed in an outage, and no other reader reads',
    async () => {
      for (const task of ['behind', 'level']) tasks.append(task, TASK_STATE_WORKING);
      const [behind] = await follow('behind', 1);
      const [level] = await follow('level', 1);
      tasks.append('behind', TASK_STATE_WORKING, TASK_STATE_COMPLETED);
      messaging.reconnected();
      expect(await behind).toEqual([2, 3]);
      messaging.signal('level', tasks.append('level', TASK_STATE_COMPLETED));
      expect(await level).toEqual([2]);
      expect(tasks.reads).toEqual(['behind']);
    },
    TEST_MS,
  );

  it(
    'measures how late a status reaches a connected reader, not one that reads the past',
    async () => {
      const minuteAgo = new Date(Date.now() - 60_000).toISOString();
      tasks.appendAt(minuteAgo, 'task', TASK_STATE_WORKING);
      const watch = await relay.watch(
        { tenantId: 'tenant', taskId: 'task', holder: 'tenant' },
        0,
        1,
        end.signal,
      );
      messaging.signal('task', tasks.appendAt(minuteAgo, 'task', TASK_STATE_COMPLETED));
      let seen = 0;
      for await (const events of watch.events()) seen = events.at(-1)?.sequence ?? 0;
      expect(seen).toBe(2);
      const { body } = await metrics.render();
      expect(body).toMatch(/^baton_event_lag_seconds_count 1$/m);
      expect(Number(/^baton_event_lag_seconds_sum ([\d.]+)$/m.exec(body)?.[1])).toBeGreaterThanOrEqual(60);
    },
    TEST_MS,
  );

  it(
    'reads the log when a signal is missing between two others',
    async () => {
      tasks.append('task', TASK_STATE_WORKING);
      const [seen] = await follow('task', 1);
      messaging.signal('task', tasks.append('task', TASK_STATE_WORKING));
      // This one is lost.
      tasks.append('task', TASK_STATE_WORKING);
      messaging.signal('task', tasks.append('task', TASK_STATE_COMPLETED));
      expect(await seen).toEqual([2, 3, 4]);
      expect(tasks.reads).toEqual(['task']);
    },
    TEST_MS,
  );
});
