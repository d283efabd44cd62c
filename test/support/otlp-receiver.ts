import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { parse } from 'protobufjs';
import { KEEPS_CONNECTIONS } from './server-options.js';

/** What the tests read of the services in opentelemetry/proto/collector, with its field numbers. */
const { root } = parse(`
  syntax = "proto3";
  message ExportTraceServiceRequest { repeated ResourceSpans resource_spans = 1; }
  message ResourceSpans { Resource resource = 1; repeated ScopeSpans scope_spans = 2; }
  message Resource { repeated KeyValue attributes = 1; }
  message ScopeSpans { repeated Span spans = 2; }
  message Span {
    bytes trace_id = 1; bytes span_id = 2; bytes parent_span_id = 4; string name = 5;
    enum SpanKind { UNSPECIFIED = 0; INTERNAL = 1; SERVER = 2; CLIENT = 3; PRODUCER = 4; CONSUMER = 5; }
    SpanKind kind = 6; fixed64 start_time_unix_nano = 7; fixed64 end_time_unix_nano = 8;
    repeated KeyValue attributes = 9; Status status = 15;
  }
  message Status { enum Code { UNSET = 0; OK = 1; ERROR = 2; } Code code = 3; }
  message ExportMetricsServiceRequest { repeated ResourceMetrics resource_metrics = 1; }
  message ResourceMetrics { Resource resource = 1; repeated ScopeMetrics scope_metrics = 2; }
  message ScopeMetrics { repeated Metric metrics = 2; }
  message Metric { string name = 1; oneof data { Gauge gauge = 5; Sum sum = 7; Histogram histogram = 9; } }
  message Gauge { repeated NumberDataPoint data_points = 1; }
  message Sum { repeated NumberDataPoint data_points = 1; uint32 aggregation_temporality = 2; bool is_monotonic = 3; }
  message Histogram { repeated HistogramDataPoint data_points = 1; uint32 aggregation_temporality = 2; }
  message NumberDataPoint {
    oneof value { double as_double = 4; sfixed64 as_int = 6; }
    repeated KeyValue attributes = 7;
  }
  message HistogramDataPoint {
    fixed64 count = 4; double sum = 5; repeated fixed64 bucket_counts = 6; repeated double explicit_bounds = 7;
    repeated KeyValue attributes = 9;
  }
  message ExportLogsServiceRequest { repeated ResourceLogs resource_logs = 1; }
  message ResourceLogs { Resource resource = 1; repeated ScopeLogs scope_logs = 2; }
  message ScopeLogs { repeated LogRecord log_records = 2; }
  message LogRecord {
    uint32 severity_number = 2; string severity_text = 3; AnyValue body = 5; repeated KeyValue attributes = 6;
    bytes trace_id = 9; bytes span_id = 10;
  }
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue {
    oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; ArrayValue array_value = 5; }
  }
  message ArrayValue { repeated AnyValue values = 1; }
`);
const Request = root.lookupType('ExportTraceServiceRequest');
const MetricsRequest = root.lookupType('ExportMetricsServiceRequest');
const LogsRequest = root.lookupType('ExportLogsServiceRequest');

interface Wire {
  resourceSpans?: {
    resource?: { attributes?: WirePair[] };
    scopeSpans?: { spans?: WireSpan[] }[];
  }[];
}
interface WireSpan {
  traceId: Uint8Array;
  spanId: Uint8Array;
  parentSpanId?: Uint8Array;
  name: string;
  kind: string;
  startTimeUnixNano: string;
  endTimeUnixNano: string;
  attributes?: WirePair[];
  status?: { code?: string };
}
type WireValue = Record<string, unknown> & { arrayValue?: { values?: WireValue[] } };
interface WirePair {
  key: string;
  value?: WireValue;
}

/** A span as a collector sees it. Ids are hex. */
export interface ReceivedSpan {
  service: unknown;
  traceId: string;
  spanId: string;
  /** Empty for the first one of a trace. */
  parentId: string;
  name: string;
  kind: string;
  status: string;
  /** In ms since 1970. */
  startedAt: number;
  seconds: number;
  attributes: Record<string, unknown>;
}

interface WirePoint {
  attributes?: WirePair[];
  asDouble?: number;
  asInt?: string;
  count?: string;
  sum?: number;
  bucketCounts?: string[];
  explicitBounds?: number[];
}
type WireData = { dataPoints?: WirePoint[]; aggregationTemporality?: number; isMonotonic?: boolean };
interface WireMetric {
  name: string;
  gauge?: WireData;
  sum?: WireData;
  histogram?: WireData;
}
interface MetricsWire {
  resourceMetrics?: {
    resource?: { attributes?: WirePair[] };
    scopeMetrics?: { metrics?: WireMetric[] }[];
  }[];
}
interface LogsWire {
  resourceLogs?: {
    resource?: { attributes?: WirePair[] };
    scopeLogs?: {
      logRecords?: {
        severityNumber: number;
        severityText: string;
        body?: WireValue;
        attributes?: WirePair[];
        traceId?: Uint8Array;
        spanId?: Uint8Array;
      }[];
    }[];
  }[];
}

/** A point of a metric as a collector sees it. */
export interface ReceivedPoint {
  service: unknown;
  name: string;
  kind: 'gauge' | 'sum' | 'histogram';
  /** 2 = cumulative. */
  temporality: number | undefined;
  isMonotonic: boolean | undefined;
  attributes: Record<string, unknown>;
  /** Of a histogram: the number of values. */
  value: number;
  sum: number | undefined;
  /** Values of each bucket alone, and the bounds between them. */
  counts: number[];
  bounds: number[];
}

/** A line of a log as a collector sees it. Ids are hex. */
export interface ReceivedLog {
  service: unknown;
  severity: number;
  level: string;
  message: unknown;
  attributes: Record<string, unknown>;
  traceId: string;
  spanId: string;
}

/** A collector of OpenTelemetry: takes OTLP over HTTP as protobuf at `/v1/traces`, `/v1/metrics` and `/v1/logs`. */
export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = [];
  readonly points: ReceivedPoint[] = [];
  readonly logs: ReceivedLog[] = [];
  /** The headers of each request, oldest first. */
  readonly headers: NodeJS.Dict<string | string[]>[] = [];
  private readonly wakers = new Set<() => void>();

  private readonly signals: Record<string, ((body: Buffer) => void) | undefined> = {
    '/v1/traces': (body) => this.onExport(body),
    '/v1/metrics': (body) => this.takeMetrics(body),
    '/v1/logs': (body) => this.takeLogs(body),
  };

  private constructor(private readonly server: Server) {
    server.on('request', (request, response) => {
      void buffer(request).then((body) => {
        const isProtobuf = request.headers['content-type'] === 'application/x-protobuf';
        const take = isProtobuf ? this.signals[request.url ?? ''] : undefined;
        take?.(body);
        this.headers.push(request.headers);
        response.writeHead(take ? 200 : 404, { 'content-type': 'application/x-protobuf' }).end();
        for (const wake of this.wakers) wake();
      });
    });
  }

  static async start(): Promise<OtlpReceiver> {
    const server = createServer(KEEPS_CONNECTIONS);
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new OtlpReceiver(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Resolves with the first span for which this is true, when it has come. */
  span(isIt: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan> {
    return this.first(this.spans, isIt);
  }

  /** The same of a point of a metric. */
  point(isIt: (point: ReceivedPoint) => boolean): Promise<ReceivedPoint> {
    return this.first(this.points, isIt);
  }

  /** The same of a line of a log. */
  log(isIt: (log: ReceivedLog) => boolean): Promise<ReceivedLog> {
    return this.first(this.logs, isIt);
  }

  private async first<T>(received: readonly T[], isIt: (one: T) => boolean): Promise<T> {
    for (;;) {
      const found = received.find(isIt);
      if (found) return found;
      await new Promise<void>((resolve) => this.wakers.add(resolve));
    }
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private takeMetrics(body: Buffer): void {
    const wire = MetricsRequest.toObject(MetricsRequest.decode(body), { longs: String }) as MetricsWire;
    for (const { resource, scopeMetrics = [] } of wire.resourceMetrics ?? []) {
      const service = attributesOf(resource?.attributes)['service.name'];
      for (const metric of scopeMetrics.flatMap(({ metrics = [] }) => metrics)) {
        const kind = metric.histogram ? 'histogram' : metric.sum ? 'sum' : 'gauge';
        const { dataPoints = [], aggregationTemporality: temporality, isMonotonic } = metric[kind] ?? {};
        for (const {
          attributes,
          asDouble,
          asInt,
          count,
          sum,
          bucketCounts = [],
          explicitBounds = [],
        } of dataPoints) {
          this.points.push({
            service,
            name: metric.name,
            kind,
            temporality,
            isMonotonic,
            sum,
            bounds: explicitBounds,
            attributes: attributesOf(attributes),
            value: Number(count ?? asDouble ?? asInt),
            counts: bucketCounts.map(Number),
          });
        }
      }
    }
  }

  private takeLogs(body: Buffer): void {
    const wire = LogsRequest.toObject(LogsRequest.decode(body), { longs: String }) as LogsWire;
    for (const { resource, scopeLogs = [] } of wire.resourceLogs ?? []) {
      const service = attributesOf(resource?.attributes)['service.name'];
      for (const record of scopeLogs.flatMap(({ logRecords = [] }) => logRecords)) {
        this.logs.push({
          service,
          severity: record.severityNumber,
          level: record.severityText,
          message: valueOf(record.body ?? {}),
          attributes: attributesOf(record.attributes),
          traceId: hexOf(record.traceId),
          spanId: hexOf(record.spanId),
        });
      }
    }
  }

  private onExport(body: Buffer): void {
    const wire = Request.toObject(Request.decode(body), { longs: String, enums: String }) as Wire;
    for (const { resource, scopeSpans = [] } of wire.resourceSpans ?? []) {
      const service = attributesOf(resource?.attributes)['service.name'];
      for (const span of scopeSpans.flatMap(({ spans = [] }) => spans)) {
        this.spans.push({
          service,
          name: span.name,
          kind: span.kind,
          traceId: hexOf(span.traceId),
          spanId: hexOf(span.spanId),
          parentId: hexOf(span.parentSpanId),
          status: span.status?.code ?? 'UNSET',
          startedAt: Number(span.startTimeUnixNano) / 1e6,
          seconds: Number(BigInt(span.endTimeUnixNano) - BigInt(span.startTimeUnixNano)) / 1e9,
          attributes: attributesOf(span.attributes),
        });
      }
    }
  }
}

const hexOf = (bytes: Uint8Array = new Uint8Array()): string => Buffer.from(bytes).toString('hex');

const attributesOf = (pairs: WirePair[] = []): Record<string, unknown> =>
  Object.fromEntries(pairs.map(({ key, value = {} }) => [key, valueOf(value)]));

function valueOf(value: WireValue): unknown {
  if (value.arrayValue) return (value.arrayValue.values ?? []).map(valueOf);
  if (typeof value.intValue === 'string') return Number(value.intValue);
  return Object.values(value)[0];
}
