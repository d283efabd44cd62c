import type { Attributes, HrTime } from '@opentelemetry/api';
import type { Resource } from '@opentelemetry/resources';
import {
  AggregationTemporality,
  DataPointType,
  type MetricData,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from '@opentelemetry/sdk-metrics';
import type { MetricObjectWithValues, MetricValueWithName } from 'prom-client';
import type { Metrics } from './metrics.js';
import type { Sender } from './tracing.js';

/** Maximum time for a collector to take an export. */
const EXPORT_MS = 10_000;

/** A metric as Prometheus reads it. */
type ReadMetric = MetricObjectWithValues<MetricValueWithName<string>>;
interface Times {
  startTime: HrTime;
  endTime: HrTime;
}

/**
 * Sends what `/metrics` shows, with the same names, labels and bounds. So each metric is declared once.
 * @param everyMs pause between two exports
 */
export function sendMetrics(
  metrics: Metrics,
  { exporter, resource, everyMs }: { exporter: PushMetricExporter; resource: Resource; everyMs: number },
): Sender {
  const startTime = timeOf(Date.now() - process.uptime() * 1_000);
  const reader = new PeriodicExportingMetricReader({
    exporter,
    exportIntervalMillis: everyMs,
    exportTimeoutMillis: Math.min(EXPORT_MS, everyMs),
  });
  reader.setMetricProducer({
    collect: async () => {
      const read = await metrics.read();
      const times = { startTime, endTime: timeOf(Date.now()) };
      const scopeMetrics = [
        { scope: { name: 'baton' }, metrics: read.map((metric) => dataOf(metric, times)) },
      ];
      return { resourceMetrics: { resource, scopeMetrics }, errors: [] };
    },
  });
  return { close: () => reader.shutdown() };
}

const timeOf = (ms: number): HrTime => [Math.floor(ms / 1_000), Math.round((ms % 1_000) * 1e6)];

function dataOf(metric: ReadMetric, times: Times): MetricData {
  const descriptor = { name: metric.name, description: metric.help, unit: '', valueType: 1 };
  const aggregationTemporality = AggregationTemporality.CUMULATIVE;
  // prom-client's types have numbers for kinds of metrics. Its values are words.
  const type = String(metric.type);
  if (type === 'histogram') {
    const dataPoints = histogramsOf(metric.values).map((point) => ({ ...times, ...point }));
    return { descriptor, aggregationTemporality, dataPointType: DataPointType.HISTOGRAM, dataPoints };
  }
  const dataPoints = metric.values
    .filter(({ value }) => Number.isFinite(value))
    .map(({ labels, value }) => ({ ...times, attributes: labels as Attributes, value }));
  if (type === 'counter') {
    const dataPointType = DataPointType.SUM;
    return { descriptor, aggregationTemporality, dataPointType, dataPoints, isMonotonic: true };
  }
  return { descriptor, aggregationTemporality, dataPointType: DataPointType.GAUGE, dataPoints };
}

interface Histogram {
  attributes: Attributes;
  value: { buckets: { boundaries: number[]; counts: number[] }; sum: number; count: number };
}

/** Prometheus has a series for each bucket, with all values up to its bound. OTLP has the values of each bucket alone. */
function histogramsOf(values: ReadMetric['values']): Histogram[] {
  const found = new Map<string, Histogram>();
  for (const { metricName = '', labels, value } of values) {
    const { le, ...attributes } = labels as Attributes;
    const key = JSON.stringify(Object.entries(attributes).sort());
    const known = found.get(key);
    const point = known ?? {
      attributes,
      value: { buckets: { boundaries: [], counts: [] }, sum: 0, count: 0 },
    };
    if (!known) found.set(key, point);
    if (metricName.endsWith('_sum')) point.value.sum = value;
    else if (metricName.endsWith('_count')) point.value.count = value;
    else {
      const { boundaries, counts } = point.value.buckets;
      counts.push(value - counts.reduce((sum, count) => sum + count, 0));
      if (le !== '+Inf') boundaries.push(Number(le));
    }
  }
  return [...found.values()];
}
