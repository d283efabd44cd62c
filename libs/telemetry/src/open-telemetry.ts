import {
  type Context,
  diag,
  DiagLogLevel,
  ROOT_CONTEXT,
  type Span as OtelSpan,
  type SpanContext,
  SpanKind,
  SpanStatusCode,
  trace,
  type Tracer as OtelTracer,
} from '@opentelemetry/api';
import { OTLPLogExporter } from '@opentelemetry/exporter-logs-otlp-proto';
import { OTLPMetricExporter } from '@opentelemetry/exporter-metrics-otlp-proto';
import { OTLPTraceExporter } from '@opentelemetry/exporter-trace-otlp-proto';
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from '@opentelemetry/resources';
import { BasicTracerProvider, BatchSpanProcessor } from '@opentelemetry/sdk-trace-base';
import { hostname } from 'node:os';
import type { Logger } from './logger.js';
import type { Metrics } from './metrics.js';
import { sendLogs } from './otlp-logs.js';
import { sendMetrics } from './otlp-metrics.js';
import type { Attributes, Sender, Span, SpanOptions, Tracer } from './tracing.js';
import type { Endpoints, TelemetrySettings } from './otlp-endpoints.js';
import { TRACEPARENT } from './traceparent.js';
import { within } from './within.js';

/** Maximum time to send the last of it when the process stops. */
const CLOSE_MS = 3_000;
/** A tenant writes some of the values. */
const MAX_TEXT = 1_024;

/**
 * Sends spans, metrics and lines of the log over OTLP (protobuf over HTTP) in batches. If the buffer is full, entries
 * are dropped: telemetry never delays a task. Nothing is registered globally, so libraries that trace themselves send
 * nothing.
 */
export function openTelemetry(
  endpoints: Endpoints,
  settings: TelemetrySettings,
  { logger, metrics }: { logger: Logger; metrics: Metrics },
  processName: string,
): { tracer?: Tracer; close: () => Promise<void> } {
  reportFailures(logger);
  const resource = resourceOf(settings, processName);
  const headers = headersOf(settings.otlpHeaders);
  const senders: Sender[] = [];
  const tracing =
    endpoints.traces === undefined ? undefined : openTracer(endpoints.traces, headers, resource);
  if (tracing) senders.push(tracing);
  if (endpoints.metrics !== undefined) {
    const exporter = new OTLPMetricExporter({ url: endpoints.metrics, headers });
    senders.push(sendMetrics(metrics, { exporter, resource, everyMs: settings.otelMetricsEveryMs }));
  }
  if (endpoints.logs !== undefined) {
    senders.push(sendLogs(new OTLPLogExporter({ url: endpoints.logs, headers }), resource));
  }
  const close = async (): Promise<void> => {
    await within(Promise.allSettled(senders.map((sender) => sender.close())), CLOSE_MS);
  };
  return { ...(tracing && { tracer: tracing.tracer }), close };
}

function resourceOf({ otelServiceName }: TelemetrySettings, processName: string): Resource {
  const own = {
    'service.name': `baton-${processName}`,
    'service.namespace': 'baton',
    'service.instance.id': `${hostname()}-${process.pid}`,
  };
  return defaultResource()
    .merge(resourceFromAttributes(own))
    .merge(detectResources({ detectors: [envDetector] }))
    .merge(resourceFromAttributes(otelServiceName ? { 'service.name': otelServiceName } : {}));
}

function openTracer(
  url: string,
  headers: Record<string, string>,
  resource: Resource,
): Sender & { tracer: Tracer } {
  const provider = new BasicTracerProvider({
    resource,
    spanLimits: { attributeValueLengthLimit: MAX_TEXT },
    spanProcessors: [new BatchSpanProcessor(new OTLPTraceExporter({ url, headers }))],
  });
  const tracer = provider.getTracer('baton');
  return {
    tracer: {
      start: (name, traceparent, options) => new OpenSpan(tracer, name, contextOf(traceparent), options),
    },
    close: () => provider.shutdown(),
  };
}

/** As OTEL_EXPORTER_OTLP_HEADERS has them: `name=value,name=value`, with escapes as in URLs. */
function headersOf(text = ''): Record<string, string> {
  const pairs = text.split(',').map((pair) => pair.trim().split(/=(.*)/s));
  const named = pairs.filter(([name]) => name);
  return Object.fromEntries(named.map(([name = '', value = '']) => [name.trim(), unescaped(value.trim())]));
}

function unescaped(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}

const KINDS = {
  internal: SpanKind.INTERNAL,
  server: SpanKind.SERVER,
  client: SpanKind.CLIENT,
  producer: SpanKind.PRODUCER,
  consumer: SpanKind.CONSUMER,
};

class OpenSpan implements Span {
  readonly traceparent: string;
  private readonly span: OtelSpan;

  constructor(
    private readonly tracer: OtelTracer,
    name: string,
    parent: Context,
    { kind = 'internal', attributes = {}, startTime }: SpanOptions = {},
  ) {
    this.span = tracer.startSpan(
      name.slice(0, MAX_TEXT),
      {
        kind: KINDS[kind],
        attributes: definedAttributes(attributes),
        ...(startTime !== undefined && { startTime }),
      },
      parent,
    );
    this.traceparent = textOf(this.span.spanContext());
  }

  start(name: string, options?: SpanOptions): Span {
    return new OpenSpan(this.tracer, name, trace.setSpan(ROOT_CONTEXT, this.span), options);
  }

  rename(name: string): void {
    this.span.updateName(name.slice(0, MAX_TEXT));
  }

  set(attributes: Attributes): void {
    this.span.setAttributes(definedAttributes(attributes));
  }

  fail(type: string): void {
    this.span.setStatus({ code: SpanStatusCode.ERROR });
    this.span.setAttribute('error.type', type);
  }

  end(): void {
    this.span.end();
  }
}

type SetAttributes = Record<string, string | number | boolean | string[]>;

const definedAttributes = (attributes: Attributes): SetAttributes =>
  Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined)) as SetAttributes;

function contextOf(traceparent: string | undefined): Context {
  const [, traceId, spanId, flags = '00'] = TRACEPARENT.exec(traceparent ?? '') ?? [];
  if (traceId === undefined || spanId === undefined) return ROOT_CONTEXT;
  const context: SpanContext = { traceId, spanId, traceFlags: parseInt(flags, 16), isRemote: true };
  return trace.setSpanContext(ROOT_CONTEXT, context);
}

const textOf = ({ traceId, spanId, traceFlags }: SpanContext): string =>
  `00-${traceId}-${spanId}-${traceFlags.toString(16).padStart(2, '0')}`;

/** An outage of the collector writes one line a minute. */
const QUIET_MS = 60_000;

/** At most once a minute: the SDK reports a collector that is away for each batch. */
function reportFailures(logger: Logger): void {
  let reportedAt = -Infinity;
  const report = (message: string): void => {
    if (performance.now() - reportedAt < QUIET_MS) return;
    reportedAt = performance.now();
    logger.warn('OpenTelemetry reports a failure', { reason: message.slice(0, MAX_TEXT) });
  };
  const quiet = (): void => undefined;
  diag.setLogger(
    { error: report, warn: report, info: quiet, debug: quiet, verbose: quiet },
    { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true },
  );
}
