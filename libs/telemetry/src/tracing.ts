import type { Environment } from '@baton/config';
import type { OnApplicationShutdown } from '@nestjs/common';
import type { Logger } from './logger.js';

/** The value of an attribute of a span. */
export type Attribute = string | number | boolean | readonly string[];
export type Attributes = Readonly<Record<string, Attribute | undefined>>;

/** What a span is about, and what it belongs to. */
export interface SpanOptions {
  /** As OpenTelemetry defines it. Default: `internal`. */
  kind?: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  attributes?: Attributes;
  /** In ms since 1970. Default: now. */
  startTime?: number;
}

/** Work that is measured and shown in a trace. */
export interface Span {
  /** The W3C `traceparent` of whatever this work leads to, in this process or elsewhere. */
  readonly traceparent: string;
  /** A span for a part of this work. */
  start(name: string, options?: SpanOptions): Span;
  rename(name: string): void;
  /** Adds attributes. Those without a value are left out. */
  set(attributes: Attributes): void;
  /** @param type a short word for the kind of failure: never a text that a tenant or a user wrote */
  fail(type: string): void;
  end(): void;
}

/** Begins the spans of this process. */
export interface Tracer {
  /** @param traceparent what it belongs to; unset, or no valid one: it begins a trace */
  start(name: string, traceparent: string | undefined, options?: SpanOptions): Span;
  /** Sends what has ended, and stops. Never rejects. */
  close(): Promise<void>;
}

/** The settings of OpenTelemetry that Baton reads itself. The SDK reads the others from the environment. */
export type TracingSettings = Pick<
  Environment,
  'otlpEndpoint' | 'otlpTracesEndpoint' | 'otlpHeaders' | 'otelSdkDisabled' | 'otelServiceName'
>;

/**
 * Traces of this process. Contexts are passed on as the text of `traceparent`: a run outlives its process, so its trace must be
 * in Postgres anyway. Off unless OTEL_EXPORTER_OTLP_ENDPOINT is set. Then there is no tracer, and nothing of OpenTelemetry is
 * loaded (docs/inside/adr/0041-opentelemetry.md).
 */
export class Tracing implements OnApplicationShutdown {
  constructor(
    /** Unset: tracing is off. */
    readonly tracer?: Tracer,
  ) {}

  /** @param processName `api` or `worker`: the service is `baton-<process>`, unless OTEL_SERVICE_NAME names another */
  static async open(settings: TracingSettings, logger: Logger, processName = 'process'): Promise<Tracing> {
    const { otlpEndpoint, otlpTracesEndpoint, otelSdkDisabled } = settings;
    if (otelSdkDisabled || (otlpEndpoint ?? otlpTracesEndpoint) === undefined) return new Tracing();
    const { openTracer } = await import('./open-telemetry.js');
    return new Tracing(openTracer(settings, logger, processName));
  }

  /** After everything that may still end a span. */
  async onApplicationShutdown(): Promise<void> {
    await this.tracer?.close();
  }
}
