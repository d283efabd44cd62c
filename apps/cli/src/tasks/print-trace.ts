import type { TenantPaths, TenantSchemas } from '@baton/contract';
import { printTable, printValue, type Terminal } from '../output.js';

type Span = TenantSchemas['Span'];
export type Trace =
  TenantPaths['/v1/tasks/{id}/trace']['get']['responses'][200]['content']['application/json'];
export type CallDetail =
  TenantPaths['/v1/tasks/{id}/trace/{entry}']['get']['responses'][200]['content']['application/json'];

const TITLES = ['span', 'begins after', 'takes', 'state', 'entry', ''];

const ms = (text: string): number => Date.parse(text);
const seconds = (milliseconds: number): string => `${(Math.max(milliseconds, 0) / 1000).toFixed(2)} s`;

/**
 * Prints a trace as a table, each span below the one around it.
 * @param slugs names of agents by their ids, for children
 */
export function printTrace(terminal: Terminal, trace: Trace, slugs: ReadonlyMap<string, string>): void {
  const { spans, now } = trace;
  const begin = Math.min(...spans.map(({ started_at: at }) => ms(at)));
  const rows = inTree(spans).map(({ span, depth }) => {
    const end = span.ended_at === null ? ms(now) : ms(span.ended_at);
    return [
      `${'  '.repeat(depth)}${span.kind} ${span.kind === 'child' ? (slugs.get(span.name) ?? span.name) : span.name}`,
      seconds(ms(span.started_at) - begin),
      seconds(end - ms(span.started_at)),
      span.state,
      span.entry === undefined ? '' : String(span.entry),
      saidOf(span, trace),
    ];
  });
  printTable(terminal, TITLES, rows, 'The task has no trace yet.');
}

/** Prints what a call of a model or tool has said. */
export function printCall(terminal: Terminal, { model, tool }: CallDetail): void {
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

function saidOf(span: Span, { model_calls: calls, currency }: Trace): string {
  if (span.error !== undefined) return span.error;
  const call = span.model_call === undefined ? undefined : calls[span.model_call];
  if (call) {
    const cost = call.cost === null ? '' : `, ${call.cost} ${currency}`;
    return `${call.finish ?? 'failed'}, ${call.input_tokens} → ${call.output_tokens} tokens${cost}`;
  }
  return span.task_id ?? span.worker_id ?? '';
}

/** The spans depth first. One whose parent is not among them is at the top. */
function inTree(spans: readonly Span[]): { span: Span; depth: number }[] {
  const ids = new Set(spans.map(({ id }) => id));
  const below = new Map<string, Span[]>();
  for (const span of spans) {
    const parent = span.parent_id !== null && ids.has(span.parent_id) ? span.parent_id : '';
    below.set(parent, [...(below.get(parent) ?? []), span]);
  }
  const walk = (parent: string, depth: number): { span: Span; depth: number }[] =>
    (below.get(parent) ?? []).flatMap((span) => [{ span, depth }, ...walk(span.id, depth + 1)]);
  return walk('', 0);
}
