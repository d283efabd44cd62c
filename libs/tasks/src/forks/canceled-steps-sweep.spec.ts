import { ProtocolError } from '@baton/a2a';
import type { CompensationStore } from '@baton/database';
import { Logger } from '@baton/telemetry';
import type { SweepLeader } from '../core/sweep-leader.js';
import { CanceledStepsSweep } from './canceled-steps-sweep.js';
import type { TaskForks } from './task-forks.js';

/** One sweep with one canceled task. @returns what it has done with the task */
async function sweep(undoCanceled: () => Promise<string | undefined>): Promise<string[]> {
  const trace: string[] = [];
  const compensations = {
    takeCanceled: async () => [{ tenantId: 'tenant', taskId: 'task' }],
    postpone: async (_: string, taskId: string) => void trace.push(`postpone ${taskId}`),
    forget: async (_: string, taskId: string) => void trace.push(`forget ${taskId}`),
  };
  const sweeping = new CanceledStepsSweep(
    compensations as unknown as CompensationStore,
    { undoCanceled } as unknown as TaskForks,
    { on: () => undefined } as unknown as SweepLeader,
    Logger.silent(),
  );
  await sweeping.runOnce();
  return trace;
}
const failWith = (error: Error) => (): Promise<string> => Promise.reject(error);

describe('a canceled task with steps to undo', () => {
  it.each([['undo'], [undefined]])(
    'is forgotten once the task is made that undoes them, or if there are none: %s',
    async (made) => {
      expect(await sweep(async () => made)).toEqual(['forget task']);
    },
  );

  it('is tried again after a longer and longer pause while its agent cannot run', async () => {
    const disabled = new ProtocolError('unsupported-operation', 'its agent is disabled');
    expect(await sweep(failWith(disabled))).toEqual(['postpone task']);
  });

  it('is tried again soon while its tenant has no room for a task', async () => {
    const full = ProtocolError.limitExceeded('tasksWaiting', 1, 1, 'wait');
    expect(await sweep(failWith(full))).toEqual([]);
  });

  it('stays as it is while Postgres is away', async () => {
    await expect(sweep(failWith(new Error('gone')))).rejects.toThrow('gone');
  });
});
