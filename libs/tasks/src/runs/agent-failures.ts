import type { AgentCrash, AgentError } from '@baton/agents';
import type { ClaimedRun, RunStore } from '@baton/database';
import type { Logger } from '@baton/telemetry';
import type { ActiveRuns } from './active-runs.js';

/** Keep, for the author of the agent, the error with which a turn fails. The turn ends also if that is not possible. */
export async function noteError(
  runs: RunStore,
  run: ClaimedRun,
  { detail }: AgentError,
  logger: Logger,
): Promise<void> {
  const error = { ...detail, attempt: run.attempt, at: new Date().toISOString() };
  await runs.noteError(run, error).catch((reason: unknown) => {
    logger.warn('the error of a run could not be kept', { err: reason, runId: run.runId });
  });
}

/** The agent's process has died. The run is tried again, as often as if its worker had died. */
export async function giveUp(
  active: ActiveRuns,
  runs: RunStore,
  run: ClaimedRun,
  { message, detail, hadCompany }: AgentCrash,
): Promise<void> {
  const { attempt } = run;
  // First: a heartbeat under way would extend the lease again.
  active.release(run);
  const at = new Date().toISOString();
  await runs.giveUp(run, { ...detail, attempt, at, crash: message, runsAlone: hadCompany });
}
