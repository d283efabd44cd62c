import type { ClaimedRun, RunStore } from '@baton/database';
import type { Messaging, RunJob } from '@baton/messaging';
import { Logger, Metrics } from '@baton/telemetry';
import type { ActiveRuns } from './active-runs.js';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { RunExecutor } from './run-executor.js';

const JOB: RunJob = { tenantId: 'tenant', taskId: 'task', runId: 'run', attempt: 0 };

it('a worker that is cut off from Postgres gives up a claim, and returns the run if it gets it late', async () => {
  const cutOff = new AbortController();
  let answer!: (run: ClaimedRun) => void;
  const returned: string[] = [];
  const runs: Pick<RunStore, 'claim' | 'returnToQueue'> = {
    claim: () => new Promise((resolve) => (answer = resolve)),
    returnToQueue: async (run) => {
      returned.push(run.runId);
      return { ...run, mayUseReserved: false };
    },
  };
  const active: Pick<ActiveRuns, 'workerId' | 'cutOff' | 'whileClaiming'> = {
    workerId: 'worker',
    cutOff: cutOff.signal,
    whileClaiming: (_tenantId, _runId, claim) => claim(),
  };
  const enqueued: RunJob[] = [];
  const later = new Promise<void>((resolve) => {
    const messaging: Pick<Messaging, 'enqueueRuns'> = {
      enqueueRuns: async (jobs) => {
        enqueued.push(...jobs);
        resolve();
      },
    };
    const unused = undefined as never;
    const logger = Logger.silent();
    const queue = [unused, runs, unused, messaging, unused, logger] as unknown;
    const dispatcher = new RunDispatcher(...(queue as ConstructorParameters<typeof RunDispatcher>));
    const claims = [runs, unused, unused, messaging, new Metrics(), unused, unused, active];
    const agents = [unused, unused, unused];
    const services = [...claims, ...agents, dispatcher, { leaseMs: 3_000 }, logger] as unknown;
    const executor = new RunExecutor(...(services as ConstructorParameters<typeof RunExecutor>));
    const executing = executor.execute(JOB);
    cutOff.abort(new Error('no Postgres'));
    void executing.then(() => answer({ ...JOB, attempt: 1 } as ClaimedRun));
  });
  await later;
  expect(returned).toEqual(['run']);
  expect(enqueued).toEqual([{ ...JOB, attempt: 1, mayUseReserved: false }]);
});
