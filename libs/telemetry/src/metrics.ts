import { collectDefaultMetrics, Counter, Gauge, Histogram, Registry } from 'prom-client';

const MILLISECONDS_TO_MINUTE = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 60];

/** Models that have figures of their own; the rest is `other`. */
const MAX_MODELS = 100;

/** What is known of one call of a model. */
export interface ModelCallFigures {
  provider: string;
  model: string;
  outcome: string;
  seconds: number;
  firstWordSeconds?: number;
  tokens: { inputTokens: number; outputTokens: number };
}

/** What a process counts, in the form Prometheus reads. Times are in seconds. Inject it by class. */
export class Metrics {
  private readonly registry = new Registry();
  private readonly refreshers: (() => Promise<void>)[] = [];

  /** Jobs in the queue, by state (`waiting`, `active`). */
  readonly queueDepth = this.gauge('baton_queue_depth', 'Jobs in the queue', ['state']);
  /** Runs in Postgres, by state: `waiting` for a slot, `queued` for a worker, `running`, `suspended` until other tasks end. */
  readonly runs = this.gauge('baton_runs', 'Runs by state', ['state']);
  /** Worker processes that have given a sign of life lately. */
  readonly liveWorkers = this.gauge('baton_live_workers', 'Workers that are alive', []);
  /** How long ago the oldest run was accepted that no worker has yet. */
  readonly oldestWaitingRun = this.gauge(
    'baton_oldest_waiting_run_seconds',
    'Age of the oldest waiting run',
    [],
  );
  /** From the acceptance of a turn to its start on a worker. */
  readonly runStart = this.histogram('baton_run_start_seconds', 'Acceptance to start of a run', []);
  /** Streams that this process serves now. */
  readonly openStreams = this.gauge('baton_open_streams', 'Streams open in this process', []);
  /** Readers of task logs in this process: streams, and calls that wait for the end of a turn. */
  readonly taskWatches = this.gauge('baton_task_watches', 'Task logs followed by this process', []);
  /** From what an agent says until it is in the log; of a batch that of its first event. Workers. */
  readonly eventAppend = this.histogram('baton_event_append_seconds', 'From output to log of an event', []);
  /** From what an agent says until a reader that is there gets it; measured with statuses, which have a time. API. */
  readonly eventLag = this.histogram('baton_event_lag_seconds', 'From output to reader of a status', []);
  /** HTTP requests, by route and status; of a stream the time to its first frame. */
  readonly requestDuration = this.histogram('baton_request_duration_seconds', 'Duration of requests', [
    'route',
    'method',
    'status',
  ]);
  /** Requests refused and runs ended because a tenant was over a limit, by the limit's name. */
  readonly limitExceeded = this.counter('baton_limit_exceeded_total', 'Over a limit of a tenant', ['limit']);
  readonly eventsAppended = this.counter('baton_events_appended_total', 'Events appended to task logs', []);
  /** Runs finished by this process, by outcome (`completed`, `failed`, `lost` …). */
  readonly runsFinished = this.counter('baton_runs_finished_total', 'Runs finished', ['outcome']);

  /** Rows deleted past their retention, by kind (`tasks`, `events`, `messages`, `runs` …). */
  readonly retentionDeleted = this.counter(
    'baton_retention_deleted_total',
    'Rows deleted past their retention',
    ['kind'],
  );

  /** Runs that used up their attempts, as far as this process has found them. */
  readonly deadLetters = this.counter('baton_dead_letters_total', 'Runs that used up their attempts', []);

  /** Times of schedules that this process has settled, by outcome (`started`, `skipped`, `missed`, `refused`). */
  readonly scheduleFirings = this.counter('baton_schedule_firings_total', 'Times of schedules', ['outcome']);
  private readonly models = new Set<string>();
  private readonly modelRetries = this.counter('baton_model_retries_total', 'Calls of models made again', [
    'provider',
    'model',
    'reason',
  ]);
  private readonly modelCalls = this.histogram('baton_model_call_seconds', 'Duration of calls of models', [
    'provider',
    'model',
    'outcome',
  ]);
  private readonly modelFirstWord = this.histogram(
    'baton_model_first_word_seconds',
    'From the call of a model to its first word',
    ['provider', 'model'],
  );
  private readonly modelTokens = this.counter('baton_model_tokens_total', 'Tokens of models', [
    'provider',
    'model',
    'kind',
  ]);

  constructor() {
    collectDefaultMetrics({ register: this.registry });
  }

  /** Have `refresh` bring gauges up to date before every scrape. One that rejects leaves the last values. */
  onScrape(refresh: () => Promise<void>): void {
    this.refreshers.push(refresh);
  }

  /** Count one call of a model, whatever came of it; `outcome` is `ok`, `stopped` or what went wrong. */
  modelCall(call: ModelCallFigures): void {
    const { provider, outcome, seconds, firstWordSeconds, tokens } = call;
    const model = this.modelLabel(call);
    this.modelCalls.observe({ provider, model, outcome }, seconds);
    if (firstWordSeconds !== undefined) this.modelFirstWord.observe({ provider, model }, firstWordSeconds);
    this.modelTokens.inc({ provider, model, kind: 'input' }, tokens.inputTokens);
    this.modelTokens.inc({ provider, model, kind: 'output' }, tokens.outputTokens);
  }

  /** Count a call of a model that is made again, by what had gone wrong (`429`, `timeout`, `network` …). */
  modelRetry(call: Pick<ModelCallFigures, 'provider' | 'model'>, reason: string): void {
    this.modelRetries.inc({ provider: call.provider, model: this.modelLabel(call), reason });
  }

  /** All metrics as text, with the content type to serve them under. */
  async render(): Promise<{ contentType: string; body: string }> {
    await Promise.allSettled(this.refreshers.map((refresh) => refresh()));
    return { contentType: this.registry.contentType, body: await this.registry.metrics() };
  }

  /** Tenants name the models: however many they name, the metrics stay few. */
  private modelLabel({ provider, model }: Pick<ModelCallFigures, 'provider' | 'model'>): string {
    const name = `${provider}/${model}`;
    if (this.models.size < MAX_MODELS) this.models.add(name);
    return this.models.has(name) ? model : 'other';
  }

  private gauge<L extends string>(name: string, help: string, labelNames: L[]): Gauge<L> {
    return new Gauge({ name, help, labelNames, registers: [this.registry] });
  }

  private counter<L extends string>(name: string, help: string, labelNames: L[]): Counter<L> {
    return new Counter({ name, help, labelNames, registers: [this.registry] });
  }

  private histogram<L extends string>(name: string, help: string, labelNames: L[]): Histogram<L> {
    return new Histogram({
      name,
      help,
      labelNames,
      buckets: MILLISECONDS_TO_MINUTE,
      registers: [this.registry],
    });
  }
}
