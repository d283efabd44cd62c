import { type ReplayedTask, type ReplayResult, replayTasks, type TurnRequest } from '@baton/agents';
import type { TenantSchemas } from '@baton/contract';
import { messageOf } from '@baton/telemetry';
import { basename, resolve } from 'node:path';
import { answerOf, listAll, type ServerOptions, type TenantApi, tenantApi } from '../api.js';
import type { Cli } from '../cli.js';
import { OperatorError } from '../operator-error.js';
import { oneLine, printValue } from '../output.js';

export interface CheckOptions extends ServerOptions {
  agent?: string;
}

/** Tasks in these states have not ended. */
const LIVE: readonly TenantSchemas['TaskState'][] = [
  'submitted',
  'working',
  'input-required',
  'auth-required',
];

/**
 * Replays the recorded steps of the tasks of an agent that have not ended against the code in a folder.
 * @throws OperatorError if a task does not fit the code
 */
export async function checkAgent(cli: Cli, folder: string, options: CheckOptions): Promise<void> {
  const { terminal } = cli;
  const path = resolve(folder);
  const slug = options.agent ?? basename(path);
  const results: ReplayResult[] = [];
  try {
    for await (const result of replayTasks(path, recordedTasks(tenantApi(cli, options), slug))) {
      results.push(result);
      if (!options.json) terminal.out(lineOf(result));
    }
  } catch (error) {
    if (error instanceof OperatorError) throw error;
    throw new OperatorError(`The agent in ${path} cannot be loaded: ${messageOf(error)}`);
  }
  const misfits = results.filter(({ problem }) => problem !== undefined).length;
  if (options.json) {
    const printed = results.map(({ taskId, problem }) => ({
      task_id: taskId,
      fits: problem === undefined,
      problem,
    }));
    printValue(terminal, printed);
  } else if (results.length === 0) terminal.out(`No live task of ${slug} has recorded steps.`);
  if (misfits > 0) {
    throw new OperatorError(
      `${misfits} of ${results.length} tasks do not fit this code: Baton would park them.`,
    );
  }
}

const lineOf = ({ taskId, problem }: ReplayResult): string =>
  problem === undefined ? `${taskId}  fits` : `${taskId}  does not fit: ${oneLine(problem)}`;

/** The live tasks of the agent that have recorded steps, one after the other: each may be large. */
async function* recordedTasks(api: TenantApi, agent: string): AsyncGenerator<ReplayedTask> {
  for (const state of LIVE) {
    const tasks = await listAll(
      (page) => api.GET('/v1/tasks', { params: { query: { agent, state, ...page } } }),
      (page) => page.tasks,
    );
    for (const { task_id: taskId } of tasks) {
      const { turn } = await answerOf(api.GET('/v1/tasks/{id}/replay', { params: { path: { id: taskId } } }));
      if (turn) yield { taskId, request: turn as unknown as TurnRequest };
    }
  }
}
