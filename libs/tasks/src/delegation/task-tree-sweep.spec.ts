import { Logger } from '@baton/telemetry';
import { TaskTreeSweep } from './task-tree-sweep.js';

/** A sweep that finds so many runs to wake. @returns how often free slots were filled */
async function refills(due: number, woken: number): Promise<number> {
  let calls = 0;
  const taskTree = {
    wakeDue: async () => due,
    wakeNext: async () => ({ woken, next: undefined }),
    abandonedChildren: async () => ({ children: [], next: undefined }),
  };
  const sweep = new TaskTreeSweep(
    taskTree as never,
    {} as never,
    { refill: () => void (calls += 1) } as never,
    { on: () => undefined } as never,
    Logger.silent(),
  );
  await sweep.runOnce();
  return calls;
}

it.each([
  ['runs whose time has come', 1, 0, 1],
  ['runs that have nothing left to wait for', 0, 1, 1],
  ['no runs', 0, 0, 0],
])('free slots are filled at once after a sweep that wakes %s: %i and %i', async (_, due, woken, calls) => {
  expect(await refills(due, woken)).toBe(calls);
});
