import { clock } from '@baton/telemetry';
import { TaskState } from '@baton/a2a';
import type { NewRunJson } from '../tasks/new-run-json.js';
import type { ClaimedRun } from '../tasks/task-records.js';
import { statusNow } from '../tasks/task-row.js';
import { claimedNewRun, claimedOf } from './claimed-run.js';

/**
 * A run that was claimed at acceptance, in the form of `claimRun`. Reads nothing: it is for a worker that trusts the sender of the
 * JSON. Other workers use `readEagerRun`.
 * @param json what `createTask` has returned (`CreatedTask.claimed`)
 */
export function eagerRunFrom({ readBytes }: { readBytes: number }, json: string): ClaimedRun {
  const run = JSON.parse(json) as NewRunJson;
  const { tenant_id: tenantId, run_id: runId, task_id: id, message } = run;
  const row = {
    ...run,
    id,
    attempt: 1,
    metadata_cut: false,
    // Sequence of the `working` event. The writer appends it, with the first events of the agent.
    last_sequence: 2,
    parent_task_id: null,
    // The writer learns of them with each append.
    push_configs: 0,
    start_sequence: 1,
    error_detail: null,
    waited_seconds: Math.max(0, clock.now() - run.accepted_at) / 1000,
  };
  const claimed = claimedOf(row, statusNow(TaskState.TASK_STATE_WORKING), true, false);
  return claimedNewRun({ tenantId, runId }, claimed, message, readBytes);
}
