import type { TenantSchemas } from '@baton/contract';
import { MAX_LISTED, type ServerOptions } from '../api.js';
import type { Cli } from '../cli.js';
import { parseCount, sinceOf } from '../options.js';
import { formatTime, printable, printTable, printValue } from '../output.js';
import { tasksClient } from './tasks-client.js';

const TITLES = ['task', 'effect', 'kind', 'outcome', 'begun', 'key'];

export interface EffectOptions extends ServerOptions {
  outcome?: TenantSchemas['Effect']['outcome'];
  agent?: string;
  since?: string;
  limit: string;
}

/** `baton tasks effects`: the effects of tasks outside of Baton. */
export async function listEffects(cli: Cli, task: string | undefined, options: EffectOptions): Promise<void> {
  const { outcome, agent, since, limit } = options;
  const query = {
    ...(task !== undefined && { task }),
    ...(outcome !== undefined && { outcome }),
    ...(agent !== undefined && { agent }),
    ...(since !== undefined && { since: sinceOf(since).toISOString() }),
  };
  const found = await tasksClient(cli, options).effects(query, parseCount('--limit', limit, MAX_LISTED));
  if (options.json) return void printValue(cli.terminal, found);
  const rows = found.map((each) => [
    each.task_id,
    printable(each.name),
    each.kind,
    each.unknown_outcome ? `${each.outcome} (was unknown: ${each.unknown_outcome})` : each.outcome,
    each.begun_at === null ? '–' : formatTime(new Date(each.begun_at)),
    each.key ?? '–',
  ]);
  printTable(cli.terminal, TITLES, rows, 'There are no such effects.');
}
