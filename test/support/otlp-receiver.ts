import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { parse } from 'protobufjs';

/** What the tests read of opentelemetry/proto/collector/trace/v1/trace_service.proto, with its field numbers. */
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
  message KeyValue { string key = 1; AnyValue value = 2; }
  message AnyValue {
    oneof value { string string_value = 1; bool bool_value = 2; int64 int_value = 3; double double_value = 4; ArrayValue array_value = 5; }
  }
  message ArrayValue { repeated AnyValue values = 1; }
`);
const Request = root.lookupType('ExportTraceServiceRequest');

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
  seconds: number;
  attributes: Record<string, unknown>;
}

/** A collector of OpenTelemetry: takes OTLP over HTTP as protobuf at `/v1/traces`. */
export class OtlpReceiver {
  readonly spans: ReceivedSpan[] = [];
  /** The headers of each request, oldest first. */
  readonly headers: NodeJS.Dict<string | string[]>[] = [];
  private readonly wakers = new Set<() => void>();

  private constructor(private readonly server: Server) {
    server.on('request', (request, response) => {
      void buffer(request).then((body) => {
        const isTraces =
          request.url === '/v1/traces' && request.headers['content-type'] === 'application/x-protobuf';
        if (isTraces) this.take(body);
        this.headers.push(request.headers);
        response.writeHead(isTraces ? 200 : 404, { 'content-type': 'application/x-protobuf' }).end();
        for (const wake of this.wakers) wake();
      });
    });
  }

  static async start(): Promise<OtlpReceiver> {
    const server = createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new OtlpReceiver(server);
  }

  get url(): string {
    return `http://127.0.0.1:${(this.server.address() as AddressInfo).port}`;
  }

  /** Resolves with the first span for which this is true, when it has come. */
  async span(isIt: (span: ReceivedSpan) => boolean): Promise<ReceivedSpan> {
    for (;;) {
      const found = this.spans.find(isIt);
      if (found) return found;
      await new Promise<void>((resolve) => this.wakers.add(resolve));
    }
  }

  stop(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private take(body: Buffer): void {
    const wire = Request.toObject(Request.decode(body), { longs: String, enums: String }) as Wire;
    for (const { resource, scopeSpans = [] } of wire.resourceSpans ?? []) {
      const service = attributesOf(resource?.attributes)['service.name'];
      for (const span of scopeSpans.flatMap(({ spans = [] }) => spans)) {
        this.spans.push({
          ...{ service, name: span.name, kind: span.kind },
          traceId: hexOf(span.traceId),
          spanId: hexOf(span.spanId),
          parentId: hexOf(span.parentSpanId),
          status: span.status?.code ?? 'UNSET',
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
