import type { TenantSchemas } from '@baton/contract';

export type Span = TenantSchemas['Span'];

/** A span as it is shown: how deep it is, and where its bar is, in shares of the whole. */
export interface Bar {
  span: Span;
  depth: number;
  left: number;
  width: number;
  /** How long it took, or takes so far, in ms. */
  ms: number;
}

/** A bar must be seen. */
const MIN_WIDTH = 0.002;

/**
 * The spans of a trace, each below the one around it, on one axis of time. One whose parent is not among them is at the top.
 * @param now when the trace was read: spans that have not ended go up to it
 */
export function barsOf(spans: readonly Span[], now: string): Bar[] {
  const ids = new Set(spans.map(({ id }) => id));
  const below = new Map<string, Span[]>();
  for (const span of spans) {
    const parent = span.parent_id !== null && ids.has(span.parent_id) ? span.parent_id : '';
    const siblings = below.get(parent);
    if (siblings) siblings.push(span);
    else below.set(parent, [span]);
  }
  const endOf = ({ ended_at: end }: Span): number => Date.parse(end ?? now);
  const begin = spans.reduce((least, { started_at: at }) => Math.min(least, Date.parse(at)), Infinity);
  const whole = Math.max(spans.reduce((most, span) => Math.max(most, endOf(span)), begin) - begin, 1);
  const bars: Bar[] = [];
  const walk = (parent: string, depth: number): void => {
    for (const span of below.get(parent) ?? []) {
      const start = Date.parse(span.started_at);
      const ms = Math.max(endOf(span) - start, 0);
      const width = Math.max(ms / whole, MIN_WIDTH);
      const left = Math.min((start - begin) / whole, 1 - MIN_WIDTH);
      bars.push({ span, depth, left, width: Math.min(width, 1 - left), ms });
      walk(span.id, depth + 1);
    }
  };
  walk('', 0);
  return bars;
}
