import { SPAN_KINDS, type TraceFilter } from '@baton/contract';
import type { ServerOptions } from '../api.js';
import type { Cli } from '../cli.js';
import { OperatorError } from '../operator-error.js';
import { parseCount } from '../options.js';
import { printValue } from '../output.js';
import { RefusedError } from '../refused-error.js';
import { printCallRecord } from './print-call-record.js';
import { filteredTrace, printAnswers, printCall, printTrace } from './print-trace.js';
import { linksOf } from './task-fields.js';
import { tasksClient, type TasksClient } from './tasks-client.js';

/** More than a task can have. `parseCount` reads at most nine digits. */
const MAX_ENTRY = 999_999_999;
/** Longer than any span. `parseCount` reads at most nine digits. */
const MAX_SECONDS = 999_999_999;

export interface TraceOptions extends ServerOptions {
  entry?: string;
  grep?: string;
  kind?: (typeof SPAN_KINDS)[number];
  errors?: boolean;
  slow?: string;
}

/** Which spans the options are about. */
const traceFilterOf = ({ grep, kind, errors, slow }: TraceOptions): TraceFilter => ({
  ...(grep !== undefined && { text: grep }),
  ...(kind && { kind }),
  ...(errors && { errors }),
  ...(slow !== undefined && { minMs: parseCount('--slow', slow, MAX_SECONDS) * 1_000 }),
});

/** `baton tasks trace`: what happened in a task, and how long each part took. */
export async function traceTask(cli: Cli, id: string, options: TraceOptions): Promise<void> {
  const client = tasksClient(cli, options);
  if (options.entry !== undefined) {
    return traceEntry(cli, client, id, parseCount('--entry', options.entry, MAX_ENTRY), options.json);
  }
  const filter = traceFilterOf(options);
  const [whole, slugs] = [await client.trace(id), await client.slugs()];
  const found = filteredTrace(whole, filter, slugs);
  if (options.json) return void printValue(cli.terminal, found);
  printTrace(cli.terminal, whole, slugs, filter);
  if (found.spans.some(({ answered_by: by }) => by !== undefined))
    printAnswers(cli.terminal, found, await client.get(id));
  const kin = linksOf(found).map(([name, task]) => `${name}: ${task}`);
  if (kin.length > 0) cli.terminal.out(`\n${kin.join('\n')}`);
}

/** Either scope shows a part: the output of a call, or the request to its model. */
async function traceEntry(
  { terminal }: Cli,
  client: TasksClient,
  id: string,
  entry: number,
  json: boolean | undefined,
): Promise<void> {
  let refusal: RefusedError | undefined;
  const ifAllowed = <T>(answer: Promise<T>): Promise<T | undefined> =>
    answer.catch((error: unknown): undefined => {
      if (!(error instanceof RefusedError) || error.status !== 403) throw error;
      refusal ??= error;
    });
  const call = await ifAllowed(client.call(id, entry));
  const record = call?.tool || call?.step ? undefined : await ifAllowed(client.callRecord(id, entry));
  if (!call && !record) throw refusal ?? new OperatorError(`Nothing is recorded of the entry ${entry}.`);
  if (json)
    return void printValue(terminal, {
      ...call,
      task_id: id,
      entry,
      ...(record !== undefined && { record }),
    });
  if (record) return void printCallRecord(terminal, record);
  if (call) printCall(terminal, call);
  if (!call?.model) return;
  terminal.err(
    record === null
      ? "Baton has not recorded what the model was sent. Set `record: all` or `record: failed` in the agent's settings."
      : 'To see what the model was sent, use a token with the scope records:read.',
  );
}
