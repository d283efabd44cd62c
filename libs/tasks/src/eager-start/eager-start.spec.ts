import type { Environment } from '@baton/config';
import type { DispatchStore, RunKey, RunStore } from '@baton/database';
import type { LimitsService } from '@baton/identity';
import type { EagerRun, Messaging, RunJob } from '@baton/messaging';
import type { Logger } from '@baton/telemetry';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { EagerRunSeal } from './eager-run-seal.js';
import { type EagerClaim, EagerStart } from './eager-start.js';

const job = (runId: string): RunJob => ({
  tenantId: 'tenant',
  taskId: `task of ${runId}`,
  runId,
  attempt: 0,
});

const LEASE_MS = 60_000;
/** Of an API that has just accepted a task. */
const claimOf = (workerId: string): EagerClaim => ({
  workerId,
  leaseMs: LEASE_MS,
  startBefore: Date.now() + LEASE_MS / 2,
});

describe('eager start of a run', () => {
  let supportsEagerStart: boolean;
  let isHeard: boolean | undefined;
  let sent: string[];
  let returned: RunKey[];
  let isReturned: () => Promise<boolean>;
  let reservedSlots: number;
  let enqueued: RunJob[];
  let warned: unknown[];
  /** Of a worker, and delivery of the last run that was sent. */
  let listener: (run: EagerRun) => void;
  let deliver: () => void;
  beforeEach(() => {
    [supportsEagerStart, isHeard] = [true, true];
    [sent, returned, enqueued, warned] = [[], [], [], []];
    reservedSlots = 0;
    isReturned = async () => true;
  });

  /** With a dispatcher that has read which workers there are. Unset: it has read nothing yet. */
  async function informed(workers?: string[], running = 0) {
    let isRead!: () => void;
    const read = new Promise<void>((resolve) => (isRead = resolve));
    const usage = { workerSlots: 4, reservedSlots, workers, inFlight: new Map([['tenant', running]]), waiting: new Map() }; // prettier-ignore
    const store = { readSlotUsage: async () => usage } as unknown as DispatchStore;
    const runs = {
      returnToQueue: async (run: RunKey) => {
        returned.push(run);
        return (await isReturned()) ? { ...run, mayUseReserved: true } : undefined;
      },
    } as unknown as RunStore;
    const messaging = {
      get supportsEagerStart() {
        return supportsEagerStart;
      },
      sendEagerRun: async (workerId: string, run: EagerRun) => {
        sent.push(`${workerId} ${run.runId}`);
        deliver = () => listener(run);
        return isHeard;
      },
      receiveEagerRuns: (_workerId: string, listen: (run: EagerRun) => void) => void (listener = listen),
      // The refill that has read it puts no run on the queue, and ends.
      enqueueNewRuns: async () => isRead(),
      enqueueRuns: async (jobs: readonly RunJob[]) => void enqueued.push(...jobs),
    } as unknown as Messaging;
    const environment = { leaseMs: LEASE_MS, defaultLimits: {}, databaseSystemKey: 'secret' } as Environment;
    const logger = { warn: (...said: unknown[]) => warned.push(said) } as unknown as Logger;
    const limits = {} as LimitsService;
    const dispatcher = new RunDispatcher(store, runs, limits, messaging, environment, logger);
    if (workers !== undefined) {
      dispatcher.refill();
      await read;
    }
    return new EagerStart(dispatcher, messaging, environment, new EagerRunSeal(environment), logger);
  }
  const workersOf = (eager: EagerStart) =>
    [1, 2, 3].map(() => eager.claimFor()).map((claim) => claim && `${claim.workerId} ${claim.leaseMs}`);

  it('is for one worker after the other, as long as slots are known to be free', async () => {
    expect(workersOf(await informed(['one', 'two'], 2))).toEqual(['one 60000', 'two 60000', undefined]);
    expect(workersOf(await informed(['one'], 3))).toEqual(['one 60000', undefined, undefined]);
    expect(workersOf(await informed(['one'], 4))).toEqual([undefined, undefined, undefined]);
  });

  it('may begin without a read until half of the lease is over', async () => {
    const eager = await informed(['one']);
    const before = Date.now();
    const { startBefore } = eager.claimFor()!;
    expect(startBefore).toBeGreaterThanOrEqual(before + LEASE_MS / 2);
    expect(startBefore).toBeLessThanOrEqual(Date.now() + LEASE_MS / 2);
  });

  it('is not while no worker is known, or none can be notified', async () => {
    expect((await informed()).claimFor()).toBeUndefined();
    expect((await informed([])).claimFor()).toBeUndefined();
    const eager = await informed(['one']);
    supportsEagerStart = false;
    expect(eager.claimFor()).toBeUndefined();
  });

  it('is sent to its worker, and on no queue', async () => {
    const eager = await informed(['one']);
    await eager.send(job('a'), claimOf('one'), '{}');
    expect(sent).toEqual(['one a']);
    expect([...returned, ...enqueued]).toEqual([]);
  });

  it('goes on the queue without a subscriber, and nothing more is for that worker', async () => {
    const eager = await informed(['one', 'two']);
    isHeard = false;
    await eager.send(job('a'), claimOf('one'), '{}');
    const run = { ...job('a'), attempt: 1 };
    expect([returned, enqueued]).toEqual([[run], [{ ...run, mayUseReserved: false }]]);
    expect(workersOf(eager)).toEqual(['two 60000', 'two 60000', 'two 60000']);
  });

  it('goes on the queue of the reserved slots if it is the only one of its tenant, and a worker reserves some', async () => {
    reservedSlots = 1;
    const eager = await informed(['one']);
    isHeard = false;
    await eager.send(job('a'), claimOf('one'), '{}');
    expect(enqueued).toEqual([{ ...job('a'), attempt: 1, mayUseReserved: true }]);
  });

  it('is left to its lease if it is unknown whether the worker was notified', async () => {
    const eager = await informed(['one']);
    isHeard = undefined;
    await eager.send(job('a'), claimOf('one'), '{}');
    expect([...returned, ...enqueued]).toEqual([]);
    expect(eager.claimFor()).toBeUndefined();
  });

  it('is given back unless it has ended, and left to the sweeper while Postgres is away', async () => {
    const eager = await informed(['one']);
    isReturned = async () => false;
    await eager.requeue(job('a'));
    isReturned = async () => {
      throw new Error('no Postgres');
    };
    await eager.requeue(job('b'));
    expect([returned.length, enqueued.length, warned.length]).toEqual([2, 0, 1]);
  });

  describe('at its worker', () => {
    let isFree: boolean;
    let begun: string[];
    const receive = async (workerId: string) => {
      const eager = await informed(['one']);
      [isFree, begun] = [true, []];
      const slots = {
        tryStart: (_: unknown, start: () => Promise<void>) => isFree && (void start(), true),
      };
      const execute = async ({ runId }: EagerRun, json?: string) => void begun.push(`${runId} ${json}`);
      void eager.receive(workerId, slots, execute);
      return eager;
    };

    it('begins with what was sent, once, however often it is delivered', async () => {
      const eager = await receive('one');
      await eager.send(job('a'), claimOf('one'), '{"of":"a"}');
      deliver();
      deliver();
      expect(begun).toEqual(['a {"of":"a"}']);
    });

    it('is read first if it comes late, for another worker, or without a seal', async () => {
      const eager = await receive('one');
      await eager.send(job('a'), { ...claimOf('one'), startBefore: Date.now() - 1 }, '{}');
      deliver();
      await eager.send(job('b'), claimOf('two'), '{}');
      deliver();
      listener(job('c'));
      expect(begun).toEqual(['a undefined', 'b undefined', 'c undefined']);
    });

    it('goes on the queue if no slot is free, and does not begin when it is delivered again', async () => {
      const eager = await receive('one');
      isFree = false;
      await eager.send(job('a'), claimOf('one'), '{}');
      deliver();
      isFree = true;
      deliver();
      expect([begun, returned]).toEqual([[], [{ ...job('a'), attempt: 1 }]]);
    });
  });
});
