import type { Client } from 'pg';
import type { Wired } from '../wire.js';
import { LOG } from '../log-sql.js';

/** One event of a task's log, as it is stored. */
export interface LogEntry {
  sequence: number;
  attempt: number;
  payload: Wired;
}

export async function readLog(client: Client, taskId: string): Promise<LogEntry[]> {
  const { rows } = await client.query<LogEntry>(
    `SELECT sequence, attempt, payload FROM ${LOG} e WHERE task_id = $1 ORDER BY sequence`,
    [taskId],
  );
  return rows;
}

const TERMINAL = /COMPLETED|FAILED|CANCELED|REJECTED/;
const INTERRUPTED = /INPUT_REQUIRED|AUTH_REQUIRED/;

const stateOf = ({ payload }: LogEntry): string =>
  (payload.statusUpdate?.status.state ?? payload.task?.status.state ?? '') as string;

/** What is wrong with the order of a log, in words; nothing, if it is as it must be. */
export function defectsOf(log: readonly LogEntry[]): string[] {
  const numbered = log.every(({ sequence }, index) => sequence === index + 1);
  const terminal = log.filter((entry) => TERMINAL.test(stateOf(entry)));
  const isLast = terminal.length === 0 || terminal[0] === log.at(-1);
  return [
    ...(numbered ? [] : ['its sequences are not 1..n']),
    ...(stateOf(log[0]!).includes('SUBMITTED') ? [] : ['it does not begin submitted']),
    ...(terminal.length <= 1 && isLast ? [] : ['something follows its end']),
    ...turnsOf(log).flatMap(defectsOfTurn),
  ];
}

/** Each turn begins submitted. */
function turnsOf(log: readonly LogEntry[]): LogEntry[][] {
  const turns: LogEntry[][] = [];
  for (const entry of log) {
    if (stateOf(entry).includes('SUBMITTED')) turns.push([]);
    turns.at(-1)?.push(entry);
  }
  return turns;
}

function defectsOfTurn(turn: readonly LogEntry[]): string[] {
  const defects: string[] = [];
  const asks = turn.filter((entry) => INTERRUPTED.test(stateOf(entry)));
  // A task that waits for its caller may still be canceled.
  const after = asks[0] && turn.slice(turn.indexOf(asks[0]) + 1);
  if (after?.some((entry) => !stateOf(entry).includes('CANCELED'))) {
    defects.push('its turn goes on after it has asked');
  }
  let latest = 0;
  let begun = new Set<string>();
  for (const { attempt, payload, sequence } of turn) {
    if (attempt !== 0 && attempt < latest) defects.push(`${sequence} is of a dead attempt`);
    if (attempt > latest) [latest, begun] = [attempt, new Set()];
    const update = payload.artifactUpdate;
    if (!update) continue;
    const id = update.artifact.artifactId as string;
    if (!begun.has(id) && update.append === true)
      defects.push(`${sequence} appends to nothing of its attempt`);
    begun.add(id);
  }
  return defects;
}
