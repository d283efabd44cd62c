import { Logger } from '@baton/telemetry';
import { CanceledRemoteCalls } from './canceled-remote-calls.js';

/** One sweep with one canceled task that has this journal. @returns the tasks that are forgotten */
async function sweep(journal: object[]): Promise<string[]> {
  const forgotten: string[] = [];
  const calls = {
    takeCanceled: async () => [{ tenantId: 'tenant', taskId: 'task', agentId: 'agent', owner: null }],
    forget: async (_: string, taskId: string) => void forgotten.push(taskId),
  };
  const sweeping = new CanceledRemoteCalls(
    calls as never,
    { read: async () => journal } as never,
    { findIncludingDeleted: async () => undefined } as never,
    {} as never,
    {} as never,
    { forTenant: () => ({}) } as never,
    {} as never,
    {} as never,
    { on: () => undefined } as never,
    Logger.silent(),
  );
  await sweeping.runOnce();
  return forgotten;
}

it('a canceled task is forgotten once no tool server needs the cancel', async () => {
  expect(await sweep([])).toEqual(['task']);
});
