import { endpointsOf, type TelemetrySettings } from './otlp-endpoints.js';

const settings = (more: Partial<TelemetrySettings>): TelemetrySettings => ({
  otelSdkDisabled: false,
  otelMetricsEveryMs: 60_000,
  otlpHeaders: undefined,
  otelServiceName: undefined,
  otelTracesExporter: 'otlp',
  otelMetricsExporter: 'otlp',
  otelLogsExporter: 'otlp',
  otlpTracesEndpoint: undefined,
  otlpMetricsEndpoint: undefined,
  otlpLogsEndpoint: undefined,
  otlpEndpoint: undefined,
  ...more,
});

describe('where traces, metrics and logs go', () => {
  it('is nowhere without an endpoint', () => expect(endpointsOf(settings({}))).toEqual({}));

  it('is the paths of one collector, by one setting', () => {
    expect(endpointsOf(settings({ otlpEndpoint: 'http://collector:4318/' }))).toEqual({
      traces: 'http://collector:4318/v1/traces',
      metrics: 'http://collector:4318/v1/metrics',
      logs: 'http://collector:4318/v1/logs',
    });
  });

  it('can be set for one signal', () => {
    expect(endpointsOf(settings({ otlpTracesEndpoint: 'http://tempo/otlp' }))).toEqual({
      traces: 'http://tempo/otlp',
    });
    const otlpEndpoint = 'http://collector:4318';
    expect(
      endpointsOf(settings({ otlpEndpoint, otelMetricsExporter: 'none', otelLogsExporter: 'none' })),
    ).toEqual({
      traces: 'http://collector:4318/v1/traces',
    });
    expect(endpointsOf(settings({ otlpEndpoint, otelSdkDisabled: true }))).toEqual({});
  });
});
