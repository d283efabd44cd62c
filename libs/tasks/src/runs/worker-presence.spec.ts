import { Logger } from '@baton/telemetry';
import { SweepLeader } from '../core/sweep-leader.js';
import { WorkerPresence } from './worker-presence.js';

/** A worker that learns at each heartbeat whether it is the eldest. Undefined: Postgres is away. */
function presence(...eldest: (boolean | undefined)[]) {
  const trace: string[] = [];
  const workers = {
    seen: async () => {
      const isEldest = eldest.shift();
      if (isEldest === undefined) throw new Error('away');
      return { isEldest, otherSlots: 0, elderSlots: 0 };
    },
    remove: async () => undefined,
  };
  const leader = new SweepLeader({} as never);
  const sweeper = {
    noteBeat: (isTaken: boolean) => trace.push(isTaken ? 'taken' : 'failed'),
    takeOver: () => trace.push('take over'),
  };
  const reserved = { count: 0, shareWith: () => undefined };
  const worker = new WorkerPresence(
    workers as never,
    {} as never,
    leader,
    sweeper as never,
    reserved as never,
    {} as never,
    { workerConcurrency: 1, leaseMs: 30_000 } as never,
    Logger.silent(),
    { id: 'worker' },
  );
  return { worker, leader, trace };
}

describe('a heartbeat', () => {
  it('that makes the worker the leader starts a sweep, and the next ones do not', async () => {
    const { worker, leader, trace } = presence(false, true, true, false, true);
    const leads: boolean[] = [];
    for (let i = 0; i < 5; i++) {
      await worker.runOnce();
      leads.push(leader.isLeader);
    }
    expect(leads).toEqual([false, true, true, false, true]);
    expect(trace).toEqual(['taken', 'taken', 'take over', 'taken', 'taken', 'taken', 'take over']);
  });

  it('that fails is noted, and leaves the leader as it is', async () => {
    const { worker, leader, trace } = presence(true, undefined);
    await worker.runOnce();
    await expect(worker.runOnce()).rejects.toThrow('away');
    expect([leader.isLeader, trace]).toEqual([true, ['taken', 'take over', 'failed']]);
  });

  it('makes a worker that leaves no leader', async () => {
    const { worker, leader, trace } = presence(true, true);
    await worker.runOnce();
    await worker.beforeApplicationShutdown();
    await worker.runOnce();
    expect([leader.isLeader, trace]).toEqual([false, ['taken', 'take over', 'taken']]);
  });
});
