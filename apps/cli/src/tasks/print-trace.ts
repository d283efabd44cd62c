import {
  answerAt,
  answersOf,
  filterRows,
  type RestSpan,
  type TenantPaths,
  type TenantSchemas,
  type TraceFilter,
  traceRows,
} from '@baton/contract';
import { formatTable, formatTime, printable, printValue, type Terminal } from '../output.js';

export type Trace =
  TenantPaths['/v1/tasks/{id}/trace']['get']['responses'][200]['content']['application/json'];
export type CallDetail =
  TenantPaths['/v1/tasks/{id}/trace/{entry}']['get']['responses'][200]['content']['application/json'];

const TITLES = ['span', 'begins after', 'takes', 'state', 'entry', ''];

const seconds = (milliseconds: number): string => `${(milliseconds / 1000).toFixed(2)} s`;

/** The name of a span as it is shown. @param slugs names of agents by their ids, for children */
const nameIn =
  (slugs: ReadonlyMap<string, string>) =>
  ({ kind, name }: RestSpan): string =>
    kind === 'child' ? (slugs.get(name) ?? name) : name;

/**
 * The trace with the matching spans and those around them.
 * @param slugs names of agents by their ids, for children
 */
export function filteredTrace(trace: Trace, filter: TraceFilter, slugs: ReadonlyMap<string, string>): Trace {
  const { rows } = filterRows(traceRows(trace.task_id, trace).rows, filter, nameIn(slugs));
  const kept = new Set(rows.map(({ span }) => span));
  return { ...trace, spans: trace.spans.filter((span) => kept.has(span)) };
}

/**
 * Prints a trace as a table, each span below the one around it.
 * @param slugs names of agents by their ids, for children
 * @param filter only matching spans, and those around them
 */
export function printTrace(
  terminal: Terminal,
  trace: Trace,
  slugs: ReadonlyMap<string, string>,
  filter: TraceFilter,
): void {
  const nameOf = nameIn(slugs);
  // The times count from the begin of the whole trace.
  const all = traceRows(trace.task_id, trace).rows;
  const shown = filterRows(all, filter, nameOf).rows;
  if (shown.length === 0)
    return terminal.err(all.length === 0 ? 'The task has no trace yet.' : 'No span of the trace matches.');
  const rows = shown.map(({ span, start, ms }) => [
    `${span.kind} ${nameOf(span)}`,
    seconds(start),
    seconds(ms),
    span.state,
    span.entry === undefined ? '' : String(span.entry),
    saidOf(span, trace),
  ]);
  const indents = shown.map(({ depth }) => 2 * depth);
  terminal.out(formatTable(TITLES, rows, indents));
}

/** Prints what was answered to the questions of a task: who, when, the decision, and each field of a form. */
export function printAnswers(terminal: Terminal, { spans }: Trace, task: TenantSchemas['Task']): void {
  for (const { answered_by: by, ended_at: at } of spans) {
    const sent = by === undefined ? undefined : answerAt(task, at);
    if (!sent || at === null) continue;
    const { answers, rest } = answersOf(sent.message, sent.asked);
    const lines = [
      ...answers.flatMap(({ verb, tool, reason, fields }) => [
        `  ${[verb, ...(tool === undefined ? [] : [tool])].join(' ')}${reason === undefined ? '' : `: ${reason}`}`,
        ...fields.map(({ name, value }) => `    ${name}: ${value}`),
      ]),
      ...rest.map(({ text, data }) => `  ${text ?? (data === undefined ? 'a file' : JSON.stringify(data))}`),
    ];
    terminal.out(`\n${by} answered at ${formatTime(new Date(at))}:\n${printable(lines.join('\n'))}`);
  }
}

/** Prints the output of a model or tool call, or the result of a step. */
export function printCall(terminal: Terminal, { model, tool, step }: CallDetail): void {
  if (step) printValue(terminal, step.result ?? null);
  if (model) {
    if (model.reasoning !== '') terminal.out(`reasoning:\n${model.reasoning}\n`);
    if (model.text !== '') terminal.out(`text:\n${model.text}`);
    for (const call of model.calls) {
      terminal.out(`call of ${call.tool}:`);
      printValue(terminal, call.input);
    }
  }
  if (!tool) return;
  terminal.out(`${tool.tool}, ${tool.ok ? 'succeeded' : 'failed'}\ninput:`);
  printValue(terminal, tool.input ?? null);
  terminal.out('output:');
  if (typeof tool.output === 'string') terminal.out(tool.output);
  else printValue(terminal, tool.output);
}

function saidOf(span: RestSpan, { model_calls: calls, currency }: Trace): string {
  if (span.error !== undefined) return span.error;
  if (span.unknown_outcome) return `outcome was unknown: ${span.unknown_outcome}`;
  if (span.answered_by !== undefined) return `answered by ${span.answered_by}`;
  const call = span.model_call === undefined ? undefined : calls[span.model_call];
  if (call) {
    const cost = call.cost === null ? '' : `, ${call.cost} ${currency}`;
    const outcome = call.is_summary ? 'summary' : (call.finish ?? 'failed');
    return `${outcome}, ${call.input_tokens} → ${call.output_tokens} tokens${cost}`;
  }
  return span.task_id ?? span.worker_id ?? '';
}
