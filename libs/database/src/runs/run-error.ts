import type { Statement } from '../connection/database.js';

/** What is known of an error in an agent's code, for the agent's author and not for its callers. */
export interface RunError {
  attempt: number;
  /** ISO 8601. */
  at: string;
  name: string;
  message: string;
  stack?: string;
  /** The last lines that the run has written to its console. */
  output?: string[];
  /** Set if its process has died: why, in words that callers may read. */
  crash?: string;
  /** Other runs were in the process that died: the next attempt gets a process of its own. */
  runsAlone?: boolean;
}

export interface RunErrorRecord extends RunError {
  runId: string;
}

export interface ErrorRow {
  run_id: string;
  error_detail: RunError;
}

/** $1 tenant $2 run $3 attempt $4 what is known of the error */
export const NOTE_ERROR: Statement = {
  name: 'run-note-error',
  text: 'UPDATE runs SET error_detail = $4 WHERE tenant_id = $1 AND id = $2 AND attempt = $3',
};

/** The same, and its lease is over: the sweeper counts it as an attempt that died. */
export const GIVE_UP: Statement = {
  name: 'run-give-up',
  text: `
UPDATE runs SET error_detail = $4, lease_expires_at = clock_timestamp()
WHERE tenant_id = $1 AND id = $2 AND attempt = $3 AND state = 'running'`,
};

/** The last error of a task, of whichever of its turns: $1 tenant $2 task */
export const LAST_ERROR: Statement = {
  name: 'run-last-error',
  text: `
SELECT id AS run_id, error_detail FROM runs
WHERE tenant_id = $1 AND task_id = $2 AND error_detail IS NOT NULL
ORDER BY created_at DESC, id DESC LIMIT 1`,
};
