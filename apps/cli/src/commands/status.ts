import type { TenantPaths, TenantSchemas } from '@baton/contract';
import type { Command } from 'commander';
import { type Cli, JSON_OPTION } from '../cli.js';
import { OperatorError } from '../operator-error.js';
import { failureText } from '../agents/load-failure.js';
import { printFields, printValue } from '../output.js';
import { TOKEN_OPTION, URL_OPTION } from '../server.js';
import { answerOf, createApi, findTarget, type ServerOptions, type TenantApi } from '../api.js';
import { RefusedError } from '../refused-error.js';
import { TasksClient } from '../tasks/tasks-client.js';

/** States of tasks that have not ended. */
const STATES = ['submitted', 'working', 'input-required', 'auth-required'] as const;
/** Maximum number of tasks of a state that are counted. */
const MOST = 100;
const DAY_MS = 24 * 60 * 60 * 1000;

/** `baton status`: whether the server serves, and what of the tenant runs. */
export function addStatusCommand(program: Command, cli: Cli): void {
  program
    .command('status')
    .description('show whether the server is ready, the running and waiting tasks, and the usage of 24 hours')
    .option(...URL_OPTION)
    .option(...TOKEN_OPTION)
    .option(...JSON_OPTION)
    .action((options: ServerOptions) => printStatus(cli, options));
}

async function printStatus(cli: Cli, options: ServerOptions): Promise<void> {
  const target = findTarget(cli.source, options);
  const api = createApi<TenantPaths>(target);
  const requests = new TasksClient(api);
  const counts: Record<string, number> = {};
  // The first call shows whether the server answers, and whether the token is valid.
  for (const state of STATES) counts[state] = (await requests.list({ state }, MOST)).length;
  const isReady = await readiness(target.url);
  const since = new Date(Date.now() - DAY_MS).toISOString();
  const params = { query: { by: 'agent' as const, since } };
  const { usage } = await answerOf(api.GET('/v1/usage', { params }));
  const sum = (name: 'tasks' | 'failed' | 'input_tokens' | 'output_tokens'): number =>
    usage.reduce((all, group) => all + group[name], 0);
  const day = {
    tasks: sum('tasks'),
    failed: sum('failed'),
    input_tokens: sum('input_tokens'),
    output_tokens: sum('output_tokens'),
  };
  const failures = await failuresOf(api);
  if (options.json) {
    const status = { url: target.url, ready: isReady, tasks: counts, last_24_hours: day };
    printValue(cli.terminal, { ...status, load_failures: failures });
  } else {
    printFields(
      cli.terminal,
      [
        ['server', `${target.url}: ${isReady ? 'ready' : 'not ready'}`],
        ...STATES.map((state): [string, string] => [state, countOf(counts[state] ?? 0)]),
        ['last 24 hours', `${day.tasks} tasks, ${day.failed} failed`],
        ['tokens', `${day.input_tokens} input, ${day.output_tokens} output`],
      ],
      16,
    );
    for (const failure of failures) cli.terminal.err(failureText(failure));
  }
  if (!isReady)
    throw new OperatorError(`${target.url} is not ready: /readyz on its management port says why.`);
}

/** The agents in code that could not be loaded. None for a token that may not see agents. */
async function failuresOf(api: TenantApi): Promise<TenantSchemas['LoadFailure'][]> {
  try {
    // Loaded when called, so that a command starts fast.
    const { AgentsClient } = await import('../agents/agents-client.js');
    return await new AgentsClient(api).loadFailures();
  } catch (error) {
    if (error instanceof RefusedError && error.status === 403) return [];
    throw error;
  }
}

/** A full page may have a next one. */
const countOf = (count: number): string => (count === MOST ? `${MOST} or more` : String(count));

async function readiness(url: string): Promise<boolean> {
  const response = await fetch(new URL('readyz', url.endsWith('/') ? url : `${url}/`));
  await response.body?.cancel();
  return response.ok;
}
