import { Histogram, Registry } from 'prom-client';

/** How often something took how long. */
export class Durations<L extends string = never> {
  private readonly histogram: Histogram;

  constructor(
    registry: Registry,
    config: { name: string; help: string; labelNames: L[]; buckets: number[] },
  ) {
    // prom-client would refuse exemplars in a registry that can render text without them.
    this.histogram = new Histogram({ ...config, enableExemplars: true, registers: [] });
    registry.registerMetric(this.histogram);
  }

  /**
   * Counts one.
   * @param traceparent what it was a part of. If that trace is kept, it is the example of its bucket (an exemplar) until the next.
   */
  observe(labels: Record<L, string>, seconds: number, traceparent?: string | null): void {
    const exemplarLabels = traceparent?.match(SAMPLED)?.groups;
    this.histogram.observe({ labels, value: seconds, ...(exemplarLabels && { exemplarLabels }) });
  }
}

/** A `traceparent` of a trace that is kept. */
const SAMPLED = /^[\da-f]{2}-(?<trace_id>[\da-f]{32})-(?<span_id>[\da-f]{16})-[\da-f][13579bdf]/;
