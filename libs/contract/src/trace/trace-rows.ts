import type { components } from '../generated/tenants.js';

type Schemas = components['schemas'];
/** A part of a task's life, as `GET /v1/tasks/{id}/trace` answers it. */
export type RestSpan = Schemas['Span'];

/** What a trace needs to be shown. */
export interface SpansAt {
  spans: readonly RestSpan[];
  /** When the trace was read, ISO 8601. Spans that have not ended go up to it. */
  now: string;
}

/** A span as it is shown. */
export interface TraceRow {
  span: RestSpan;
  /** Unique among the rows, also where a row is of another task. */
  key: string;
  /** The task whose trace has the span. */
  taskId: string;
  /** How many spans are around it. */
  depth: number;
  /** When it began, in ms after the first span of the whole. */
  start: number;
  /** How long it took, or takes so far, in ms. */
  ms: number;
}

/** The rows of a trace on one axis of time. */
export interface TraceTree {
  /** Depth first: each span below the one around it, siblings in the order in which they are given. */
  rows: TraceRow[];
  /** The length of the axis in ms, at least 1: until the task has ended. Push notifications may be tried for days after that. */
  ms: number;
}

/**
 * The tree of a task's trace. The command line and the console show it, so both show the same. A span whose parent is not among the
 * spans is at the top. Pure.
 * @param taskId the task of the trace
 * @param children traces of tasks below it that are opened, by their ids: they replace the spans that the trace itself has below a child
 */
export function traceRows(
  taskId: string,
  trace: SpansAt,
  children: ReadonlyMap<string, SpansAt> = new Map(),
): TraceTree {
  const rows: TraceRow[] = [];
  // A trace of a hostile source may name a task as its own descendant.
  const opened = new Set([taskId]);
  const add = (of: string, { spans, now }: SpansAt, top: number): void => {
    const below = byParent(spans);
    // No recursion: a trace may be deeper than the stack.
    const stack = (below.get('') ?? []).map((span) => ({ span, depth: top })).toReversed();
    for (let next = stack.pop(); next; next = stack.pop()) {
      const { span, depth } = next;
      const start = Date.parse(span.started_at);
      const ms = Math.max(Date.parse(span.ended_at ?? now) - start, 0);
      rows.push({ span, key: `${of} ${span.id}`, taskId: of, depth, start, ms });
      const child = span.task_id === undefined ? undefined : children.get(span.task_id);
      if (child && span.task_id !== undefined && !opened.has(span.task_id)) {
        opened.add(span.task_id);
        add(span.task_id, child, depth + 1);
        continue;
      }
      for (const each of below.get(span.id)?.toReversed() ?? []) stack.push({ span: each, depth: depth + 1 });
    }
  };
  add(taskId, trace, 0);
  const begin = rows.reduce((least, { start }) => Math.min(least, start), Infinity);
  const work = rows.filter(({ span: { kind } }) => kind !== 'push' && kind !== 'delivery');
  const end = (work.length > 0 ? work : rows).reduce(
    (most, { start, ms }) => Math.max(most, start + ms),
    begin,
  );
  return {
    rows: rows.map((row) => ({ ...row, start: row.start - begin })),
    ms: rows.length === 0 ? 1 : Math.max(end - begin, 1),
  };
}

/** The spans below each span by its id; those at the top are below `''`. */
function byParent(spans: readonly RestSpan[]): Map<string, RestSpan[]> {
  const ids = new Set(spans.map(({ id }) => id));
  const below = new Map<string, RestSpan[]>();
  for (const span of spans) {
    const parent = span.parent_id !== null && ids.has(span.parent_id) ? span.parent_id : '';
    const siblings = below.get(parent);
    if (siblings) siblings.push(span);
    else below.set(parent, [span]);
  }
  return below;
}
