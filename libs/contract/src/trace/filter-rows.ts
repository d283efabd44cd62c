import type { RestSpan, TraceRow } from './trace-rows.js';

/** The kinds of spans, the most used first. */
export const SPAN_KINDS = [
  'model',
  'tool',
  'step',
  'child',
  'question',
  'sleep',
  'turn',
  'queue',
  'attempt',
  'parked',
  'push',
  'delivery',
] as const satisfies readonly RestSpan['kind'][];

/** Which spans of a trace are looked for. A span matches if it has all that is set. */
export interface TraceFilter {
  /** In its kind, its name or its error, in any case. */
  text?: string;
  kind?: RestSpan['kind'];
  /** Only spans that have failed. */
  errors?: boolean;
  /** Minimum duration, in ms. For an open span: until now. */
  minMs?: number;
}

/** The rows of a filtered trace. */
export interface FilteredRows {
  /** The matching rows and all rows around them, in the order of the trace. */
  rows: TraceRow[];
  /** The keys of the matching rows. */
  hits: ReadonlySet<string>;
}

/**
 * The matching rows of a trace, each below the spans around it. The console and the command line show it. Pure, in one pass.
 * @param rows depth first, as `traceRows` makes them
 * @param nameOf the name of a span as it is shown: that of a child is the id of its agent
 */
export function filterRows(
  rows: readonly TraceRow[],
  filter: TraceFilter,
  nameOf: (span: RestSpan) => string = ({ name }) => name,
): FilteredRows {
  const hits = new Set<string>();
  const kept: TraceRow[] = [];
  // From the last row to the first: a row with less depth than the last kept one is the span around it.
  let depth = 0;
  for (const row of rows.toReversed()) {
    const isHit = matches(row, filter, nameOf);
    if (!isHit && row.depth >= depth) continue;
    if (isHit) hits.add(row.key);
    kept.push(row);
    ({ depth } = row);
  }
  return { rows: kept.toReversed(), hits };
}

function matches(
  { span, ms }: TraceRow,
  { text, kind, errors = false, minMs = 0 }: TraceFilter,
  nameOf: (span: RestSpan) => string,
): boolean {
  if (kind !== undefined && span.kind !== kind) return false;
  if (errors && span.state !== 'failed') return false;
  if (ms < minMs) return false;
  if (text === undefined) return true;
  return `${span.kind} ${nameOf(span)} ${span.error ?? ''}`.toLowerCase().includes(text.toLowerCase());
}
