import {
  collectDefaultMetrics,
  Counter,
  Gauge,
  type Metric,
  type MetricObjectWithValues,
  type MetricValueWithName,
  type OpenMetricsContentType,
  Registry,
} from 'prom-client';
import { Durations } from './durations.js';

const MILLISECONDS_TO_MINUTE = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60];

/** A metric as the code that counts declares it. Every process shows all metrics whose code it has loaded. */
export interface MetricDefinition<M> {
  create(registry: Registry): M;
}

/** The metric of a definition. */
export type MetricOf<D> = D extends MetricDefinition<infer M> ? M : never;

const DEFINITIONS: MetricDefinition<unknown>[] = [];

function define<M>(create: (registry: Registry) => M): MetricDefinition<M> {
  const definition = { create };
  DEFINITIONS.push(definition);
  return definition;
}

/**
 * Declares a number that only grows. Call it once, beside the code that counts.
 * @param known labels that begin at 0. Without them Prometheus sees the first count as a beginning, and no increase.
 */
export const counter = <L extends string = never>(
  name: string,
  help: string,
  labelNames: L[] = [],
  known: Record<L, string>[] = [],
) =>
  define((registry) => {
    const created = new Counter({ name, help, labelNames, registers: [registry] });
    for (const labels of known) created.inc(labels, 0);
    return created;
  });

/** Declares a number that goes up and down. Call it once, beside the code that sets it. */
export const gauge = <L extends string = never>(name: string, help: string, labelNames: L[] = []) =>
  define((registry) => new Gauge({ name, help, labelNames, registers: [registry] }));

/** Declares durations in seconds, from a millisecond to a minute. Call it once, beside the code that measures. */
export const histogram = <L extends string = never>(name: string, help: string, labelNames: L[] = []) => {
  const buckets = MILLISECONDS_TO_MINUTE;
  return define((registry) => new Durations<L>(registry, { name, help, labelNames, buckets }));
};
const LIMIT_EXCEEDED = counter(
  'baton_limit_exceeded_total',
  'Requests that were refused and runs that have failed because of a limit of their tenant',
  ['limit'],
);

/** The metrics of a process, as Prometheus reads them. Inject it by class. */
export class Metrics {
  private readonly registry = new Registry();
  private readonly metrics = new Map<MetricDefinition<unknown>, unknown>();
  private readonly refreshers: (() => Promise<void>)[] = [];

  /** Refused requests and failed runs, by the name of the limit. The one metric that several libraries count. */
  readonly limitExceeded = this.get(LIMIT_EXCEEDED);

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }

  /** The metric that `definition` declares, in this process. What counts often keeps it. */
  get<M>(definition: MetricDefinition<M>): M {
    const known = this.metrics.get(definition) as M | undefined;
    if (known !== undefined) return known;
    const metric = definition.create(this.registry);
    this.metrics.set(definition, metric);
    return metric;
  }

  /** Calls `refresh` before every scrape, to bring gauges up to date. If it rejects, the last values stay. */
  onScrape(refresh: () => Promise<void>): void {
    this.refreshers.push(refresh);
  }

  /**
   * All metrics as text, with its content type.
   * @param accept what the reader takes. OpenMetrics, which has exemplars, if it names that, else the text format of Prometheus.
   */
  async render(accept = ''): Promise<{ contentType: string; body: string }> {
    await this.refresh();
    const registry = accept.includes('application/openmetrics-text') ? this.openMetrics() : this.registry;
    return { contentType: registry.contentType, body: await registry.metrics() };
  }

  /** It takes `_total` off the names of its counters for good, so it gets heirs of the metrics, which have names of their own. */
  private openMetrics(): Registry<OpenMetricsContentType> {
    const registry = new Registry<OpenMetricsContentType>();
    registry.setContentType(Registry.OPENMETRICS_CONTENT_TYPE);
    for (const metric of this.registry.getMetricsAsArray())
      registry.registerMetric(Object.create(metric) as Metric);
    return registry;
  }

  /** All metrics as data. */
  async read(): Promise<MetricObjectWithValues<MetricValueWithName<string>>[]> {
    await this.refresh();
    return this.registry.getMetricsAsJSON();
  }

  private async refresh(): Promise<void> {
    for (const definition of DEFINITIONS) this.get(definition);
    await Promise.allSettled(this.refreshers.map((refresh) => refresh()));
  }
}
