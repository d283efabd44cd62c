import type { Environment } from '@baton/config';

/** The settings of OpenTelemetry that Baton reads itself. The SDK reads the others from the environment. */
export type TelemetrySettings = Pick<
  Environment,
  | 'otlpEndpoint'
  | 'otlpTracesEndpoint'
  | 'otlpMetricsEndpoint'
  | 'otlpLogsEndpoint'
  | 'otlpHeaders'
  | 'otelSdkDisabled'
  | 'otelServiceName'
  | 'otelTracesExporter'
  | 'otelMetricsExporter'
  | 'otelLogsExporter'
  | 'otelMetricsEveryMs'
>;

/** The signals that are sent to a collector, and their URLs. */
export type Endpoints = Partial<Record<'traces' | 'metrics' | 'logs', string>>;

/** The paths are those of the specification of OTLP exporters. A signal without an endpoint is not sent. */
export function endpointsOf(settings: TelemetrySettings): Endpoints {
  if (settings.otelSdkDisabled) return {};
  const common = settings.otlpEndpoint?.replace(/\/+$/, '');
  const endpoint = (signal: string, exporter: 'otlp' | 'none', own: string | undefined) => {
    const url = own ?? (common === undefined ? undefined : `${common}/v1/${signal}`);
    return exporter === 'none' || url === undefined ? {} : { [signal]: url };
  };
  return {
    ...endpoint('traces', settings.otelTracesExporter, settings.otlpTracesEndpoint),
    ...endpoint('metrics', settings.otelMetricsExporter, settings.otlpMetricsEndpoint),
    ...endpoint('logs', settings.otelLogsExporter, settings.otlpLogsEndpoint),
  };
}
