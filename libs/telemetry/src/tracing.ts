import type { OnApplicationShutdown } from '@nestjs/common';

/** The value of an attribute of a span. */
export type Attribute = string | number | boolean | readonly string[];
export type Attributes = Readonly<Record<string, Attribute | undefined>>;

/** The subject of a span, and its parent. */
export interface SpanOptions {
  /** As OpenTelemetry defines it. Default: `internal`. */
  kind?: 'internal' | 'server' | 'client' | 'producer' | 'consumer';
  attributes?: Attributes;
  /** In ms since 1970. Default: now. */
  startTime?: number;
}

/** Work that is measured and shown in a trace. */
export interface Span {
  /** The W3C `traceparent` for all further work of this span, in this process or elsewhere. */
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
}

/** Sends one signal, until it is closed. */
export interface Sender {
  /** Sends the waiting entries, and stops. */
  close(): Promise<unknown>;
}

/**
 * Traces of this process, and what else it sends to a collector. Contexts are passed on as the text of `traceparent`: a run
 * outlives its process, so its trace must be in Postgres anyway. Off unless OTEL_EXPORTER_OTLP_ENDPOINT is set. Then there is no
 * tracer, and nothing of OpenTelemetry is loaded (docs/inside/adr/0041-opentelemetry.md).
 */
export class Tracing implements OnApplicationShutdown {
  constructor(
    /** Unset: tracing is off. */
    readonly tracer?: Tracer,
    private readonly close?: () => Promise<void>,
  ) {}

  /**
   * The result of `work`. The span belongs to the trace of `traceparent`. Without a `traceparent` or a tracer there is none.
   */
  during<T>(
    name: string,
    traceparent: string | null | undefined,
    work: () => Promise<T>,
    options?: SpanOptions,
  ): Promise<T> {
    const span = traceparent ? this.tracer?.start(name, traceparent, options) : undefined;
    return span ? work().finally(() => span.end()) : work();
  }

  /** After everything that may still end a span or write a line. */
  async onApplicationShutdown(): Promise<void> {
    await this.close?.();
  }
}
