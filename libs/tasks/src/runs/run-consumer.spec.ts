import type { RunStore } from '@baton/database';
import { Logger } from '@baton/telemetry';
import type { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { Quarantine } from './quarantine.js';

describe('quarantine', () => {
  const job = (runId: string, attempt = 2) => ({ tenantId: 'tenant', taskId: 'task', runId, attempt });
  const setUp = () => {
    const suspects = new Set(['one', 'two']);
    const postponed: string[] = [];
    const runs = {
      isSuspect: async (_tenant: string, runId: string) => suspects.has(runId),
      postpone: async (_tenant: string, runId: string) => void postponed.push(runId),
    };
    const quarantine = new Quarantine(
      runs as unknown as RunStore,
      { ended: () => undefined } as unknown as RunDispatcher,
      Logger.silent(),
    );
    return { quarantine, suspects, postponed };
  };

  it('lets one suspect in at a time, and others beside it', async () => {
    const { quarantine, postponed } = setUp();
    const leave = await quarantine.enter(job('one'));
    expect(await quarantine.enter(job('two'))).toBeUndefined();
    expect(postponed).toEqual(['two']);
    expect(await quarantine.enter(job('other'))).toBeDefined();
    expect(await quarantine.enter(job('two', 0))).toBeDefined();
    leave?.();
    expect(await quarantine.enter(job('two'))).toBeDefined();
  });

  it('stays closed when the job of the run inside comes a second time', async () => {
    const { quarantine, suspects, postponed } = setUp();
    await quarantine.enter(job('one'));
    expect(await quarantine.enter(job('one'))).toBeUndefined();
    expect(postponed).toEqual([]);
    // It executes by now, so it is no longer a suspect.
    suspects.delete('one');
    (await quarantine.enter(job('one')))?.();
    expect(await quarantine.enter(job('two'))).toBeUndefined();
  });
});
