import { counter, gauge, Metrics } from './metrics.js';

const RUNS_FINISHED = counter('baton_runs_finished_total', 'Runs that this process finished', ['outcome']);
const EVENTS_APPENDED = counter('baton_events_appended_total', 'Events appended');
counter('baton_runs_requeued_total', 'Runs enqueued again', ['reason'], [{ reason: 'lease expired' }]);
const QUEUE_DEPTH = gauge('baton_queue_depth', 'Jobs in the queue by state', ['state']);

describe('metrics', () => {
  it('shows what was counted, under the content type of Prometheus', async () => {
    const metrics = new Metrics();
    metrics.of(RUNS_FINISHED).inc({ outcome: 'completed' });
    metrics.of(EVENTS_APPENDED).inc(3);
    const { contentType, body } = await metrics.render();
    expect(contentType).toContain('text/plain');
    expect(body).toContain('baton_runs_finished_total{outcome="completed"} 1');
    expect(body).toContain('baton_events_appended_total 3');
  });

  it('brings gauges up to date before a scrape, and survives one that fails', async () => {
    const metrics = new Metrics();
    metrics.onScrape(() => Promise.reject(new Error('Redis is away')));
    metrics.onScrape(() => {
      metrics.of(QUEUE_DEPTH).set({ state: 'waiting' }, 7);
      return Promise.resolve();
    });
    expect((await metrics.render()).body).toContain('baton_queue_depth{state="waiting"} 7');
  });

  it('shows a counter with known labels before it has counted, so that its first count is an increase', async () => {
    expect((await new Metrics().render()).body).toContain(
      'baton_runs_requeued_total{reason="lease expired"} 0',
    );
  });

  it('can live several times in one process', () => {
    expect(() => [new Metrics(), new Metrics()]).not.toThrow();
  });
});
