import { counter, gauge, histogram, Metrics } from './metrics.js';

const RUNS_FINISHED = counter('baton_runs_finished_total', 'Runs that this process finished', ['outcome']);
const EVENTS_APPENDED = counter('baton_events_appended_total', 'Events appended');
counter('baton_runs_requeued_total', 'Runs enqueued again', ['reason'], [{ reason: 'lease expired' }]);
const RUN_SECONDS = histogram('baton_run_seconds', 'Duration of runs', ['outcome']);
const QUEUE_DEPTH = gauge('baton_queue_depth', 'Jobs in the queue by state', ['state']);

describe('metrics', () => {
  it('shows the counts, under the content type of Prometheus', async () => {
    const metrics = new Metrics();
    metrics.get(RUNS_FINISHED).inc({ outcome: 'completed' });
    metrics.get(EVENTS_APPENDED).inc(3);
    const { contentType, body } = await metrics.render();
    expect(contentType).toContain('text/plain');
    expect(body).toContain('baton_runs_finished_total{outcome="completed"} 1');
    expect(body).toContain('baton_events_appended_total 3');
  });

  it('brings gauges up to date before a scrape, and survives one that fails', async () => {
    const metrics = new Metrics();
    metrics.onScrape(() => Promise.reject(new Error('Redis is away')));
    metrics.onScrape(() => {
      metrics.get(QUEUE_DEPTH).set({ state: 'waiting' }, 7);
      return Promise.resolve();
    });
    expect((await metrics.render()).body).toContain('baton_queue_depth{state="waiting"} 7');
  });

  it('shows a counter with known labels before it has counted, so that its first count is an increase', async () => {
    expect((await new Metrics().render()).body).toContain(
      'baton_runs_requeued_total{reason="lease expired"} 0',
    );
  });

  it('points from a bucket to a trace that is kept, for readers of OpenMetrics', async () => {
    const metrics = new Metrics();
    const traceOf = (flags: string) => `00-${'a'.repeat(32)}-${'b'.repeat(16)}-${flags}`;
    const openMetrics = 'application/openmetrics-text;version=1.0.0;q=0.5,text/plain;version=0.0.4;q=0.2';
    metrics.get(RUN_SECONDS).observe({ outcome: 'ok' }, 0.2, traceOf('00'));
    expect((await metrics.render(openMetrics)).body).not.toContain('trace_id');
    metrics.get(RUN_SECONDS).observe({ outcome: 'ok' }, 0.2, traceOf('01'));
    const { contentType, body } = await metrics.render(openMetrics);
    expect(contentType).toContain('application/openmetrics-text');
    expect(body).toMatch(
      /baton_run_seconds_bucket{le="0.25",outcome="ok"} 2 # {trace_id="a{32}",span_id="b{16}"} 0.2 [\d.]+\n/,
    );
    expect(body).toMatch(/# EOF\n$/);
  });

  it('names its counters the same in both formats, whichever is read first', async () => {
    const metrics = new Metrics();
    metrics.get(EVENTS_APPENDED).inc(3);
    for (const accept of ['application/openmetrics-text', 'text/plain', 'application/openmetrics-text']) {
      expect((await metrics.render(accept)).body).toContain('\nbaton_events_appended_total 3\n');
    }
    expect((await metrics.render()).body).not.toContain('# EOF');
  });

  it('can live several times in one process', () => {
    expect(() => [new Metrics(), new Metrics()]).not.toThrow();
  });
});
