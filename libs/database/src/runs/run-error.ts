/** An error in an agent's code. Its details are for the agent's author, not for callers. */
export interface RunError {
  attempt: number;
  /** ISO 8601. */
  at: string;
  name: string;
  message: string;
  stack?: string;
  /** The last lines that the run has written to its console. */
  output?: string[];
  /** Set if its process has died: the reason, which callers may read. */
  crash?: string;
  /** Other runs were in the process that died: the next attempt gets a process of its own. */
  runsAlone?: boolean;
}

/** The error of one run of a task. */
export interface RunErrorRecord extends RunError {
  runId: string;
}
