import { Environment } from '@baton/config';
import {
  type ClaimedRun,
  DatabaseUnavailableError,
  retryTransient,
  type RunVersion,
  RunStore,
  TaskStore,
} from '@baton/database';
import { type EagerRun, Messaging, type RunJob } from '@baton/messaging';
import {
  clock,
  Logger,
  type MetricOf,
  counter,
  gauge,
  histogram,
  Metrics,
  type Span,
  traceIdsOf,
  within,
  Tracing,
} from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { type Agent, TaskState, serializePayload, taskStateToJSON } from '@baton/a2a';
import {
  AgentCrash,
  AgentError,
  type AgentOutput,
  JournalMismatch,
  RuntimeTable,
  type StopReason,
  Suspension,
} from '@baton/agents';
import { LimitsService } from '@baton/identity';
import { RunDispatcher } from '../dispatch/run-dispatcher.js';
import { AgentDirectory } from '../catalog/agent-directory.js';
import { TurnFailure } from '../core/turn-failure.js';
import { AppendRefused } from '../core/append-refused.js';
import { type EndedTurn, TurnEnds } from '../turns/turn-ends.js';
import { AgentCharges } from '../charges/agent-charges.js';
import { ActiveRuns } from './active-runs.js';
import { EventWriter, writerMetrics } from './event-writer.js';
import { FairStarts } from './fair-starts.js';
import { restoreArtifact } from './restore-artifact.js';
import { EventAllowance } from './event-allowance.js';
import { assertSize } from './assert-size.js';
import { TurnOutput } from './turn-output.js';
import type { RunCallRecords } from './call-records.js';
import { eitherOf, stoppedBy, unlessCutOff } from './run-signals.js';
import { startRunSpan } from './run-span.js';
import { PinnedAgents } from './pinned-agents.js';
import { TurnBuilder } from './turn-builder.js';

const RUN_START = histogram(
  'baton_run_start_seconds',
  'Time from the acceptance of a turn to its start on a worker',
);
const RUNS_FINISHED = counter(
  'baton_runs_finished_total',
  'Runs that this process has ended, by the state of their task',
  ['outcome'],
);

const RUN_SECONDS = histogram('baton_run_seconds', 'Time from the claim of a run to its end on this worker', [
  'outcome',
]);
const FIRST_OUTPUT = histogram(
  'baton_run_first_output_seconds',
  'Time from the call of an agent to its first output',
);
const CLAIMS = counter(
  'baton_runs_claimed_total',
  'Runs that this worker has begun, by attempt: more than 1 after a crash or a suspension, or if a worker gave the run back',
  ['attempt'],
);
const SLOTS = gauge('baton_worker_slots', 'Slots of this worker by state', ['state']);

/** The sum of these pauses is longer than a restart of Postgres. After them the run is left to the sweeper. */
const MAX_CLAIM_TRIES = 61;
/** Attempts with a figure of their own. An agent may have up to 100. */
const MAX_COUNTED = 3;
/** Maximum time for a stopped runtime to end, in ms. After that the worker does not wait for it. */
const WIND_UP_MS = 5_000;

/** A turn whose agent is at work. */
interface RunningTurn {
  run: ClaimedRun;
  writer: EventWriter;
  output: TurnOutput;
  /** What the agent has written on its task in this attempt. */
  metadata: Record<string, unknown>;
  records: RunCallRecords;
  signal: AbortSignal;
}

/** Executes runs: claims, iterates over the runtime's output, appends it, ends the turn. */
@Injectable()
export class RunExecutor {
  private readonly starts: MetricOf<typeof RUN_START>;
  private readonly finished: MetricOf<typeof RUNS_FINISHED>;
  private readonly claims: MetricOf<typeof CLAIMS>;
  private readonly durations: MetricOf<typeof RUN_SECONDS>;
  private readonly firstOutput: MetricOf<typeof FIRST_OUTPUT>;
  private readonly written: ReturnType<typeof writerMetrics>;
  /** Names of the jobs that are claimed or executed here. */
  private readonly underWay = new Set<string>();

  constructor(
    private readonly runs: RunStore,
    private readonly tasks: TaskStore,
    private readonly turns: TurnBuilder,
    private readonly messaging: Messaging,
    private readonly metrics: Metrics,
    private readonly limits: LimitsService,
    private readonly turnEnds: TurnEnds,
    private readonly active: ActiveRuns,
    private readonly runtimes: RuntimeTable,
    private readonly directory: AgentDirectory,
    private readonly pinned: PinnedAgents,
    private readonly dispatcher: RunDispatcher,
    private readonly environment: Environment,
    private readonly logger: Logger,
    private readonly tracing: Tracing,
    private readonly charges: AgentCharges,
    private readonly fairStarts: FairStarts,
  ) {
    this.starts = metrics.get(RUN_START);
    this.finished = metrics.get(RUNS_FINISHED);
    this.claims = metrics.get(CLAIMS);
    this.durations = metrics.get(RUN_SECONDS);
    this.firstOutput = metrics.get(FIRST_OUTPUT);
    metrics.onScrape(async () => {
      const { size } = this.active;
      metrics.get(SLOTS).set({ state: 'taken' }, size);
      metrics.get(SLOTS).set({ state: 'free' }, Math.max(0, this.environment.workerConcurrency - size));
    });
    this.written = writerMetrics(metrics);
  }

  /**
   * Execute the run that a job names. Never rejects. After any failure the run's row shows the remaining work, and the
   * sweeper finds it.
   *
   * The queue may deliver a job twice. The claim of a worker that has lost the answer succeeds again, so this worker would execute the
   * run twice.
   * @param claimed called when the claim is decided in Postgres
   */
  async execute(job: RunJob, claimed: () => void = () => undefined): Promise<void> {
    await this.executeOnce(job, claimed, () => this.claim(job));
  }

  /**
   * Execute a run that starts eagerly (`EagerStart`). Never rejects, as `execute`.
   * @param json of the run. Undefined: it is read
   */
  async executeEager(run: EagerRun, json?: string): Promise<void> {
    await this.executeOnce(
      { ...run, attempt: 0 },
      () => undefined,
      () => (json === undefined ? this.readEager(run) : Promise.resolve(this.runs.eagerRunFrom(json))),
    );
  }

  private async executeOnce(
    job: RunJob,
    claimed: () => void,
    claim: () => Promise<ClaimedRun | undefined>,
  ): Promise<void> {
    const name = `${job.runId} ${job.attempt}`;
    if (this.underWay.has(name)) return void claimed();
    this.underWay.add(name);
    try {
      await this.claimAndRun(job, claimed, claim);
    } finally {
      this.underWay.delete(name);
    }
  }

  private async claimAndRun(
    job: RunJob,
    claimed: () => void,
    claim: () => Promise<ClaimedRun | undefined>,
  ): Promise<void> {
    // Created at its first use: most runs log nothing.
    const { tenantId, taskId, runId } = job;
    let traceparent: string | null = null;
    const log = (): Logger => this.logger.child({ tenantId, taskId, runId, ...traceIdsOf(traceparent) });
    let span: Span | undefined;
    const receivedAt = Date.now();
    try {
      const run = await this.active.whileClaiming(tenantId, runId, claim);
      claimed();
      // No row: another worker has the run, or it is over. The queue only delivers; Postgres decides.
      if (!run) return;
      this.claims.inc({ attempt: run.attempt > MAX_COUNTED ? `${MAX_COUNTED + 1}+` : run.attempt });
      const startedAt = performance.now();
      if (this.tracing.tracer) span = startRunSpan(this.tracing.tracer, run, receivedAt);
      ({ traceparent } = run);
      const ended = await this.runTurn(run, log, span);
      const outcome = ended ? taskStateToJSON(ended.state) : 'TURN_GOES_ON';
      this.durations.observe(
        { outcome },
        (performance.now() - startedAt) / 1000,
        span?.traceparent ?? traceparent,
      );
      span?.set({ 'baton.task.state': ended && taskStateToJSON(ended.state) });
      if (ended?.state === TaskState.TASK_STATE_FAILED) span?.fail('TASK_STATE_FAILED');
      await this.turnEnds.follow(run, ended);
    } catch (error) {
      span?.fail('left-to-the-sweeper');
      log().error('run left to the sweeper', { err: error });
    } finally {
      span?.end();
    }
  }

  /**
   * After a lost connection it is unknown whether the claim was committed: this worker asks for it again. If it is cut off
   * from Postgres, it gives up, because other workers get the run only when this one no longer has its job.
   */
  private claim({ tenantId, runId }: RunJob): Promise<ClaimedRun | undefined> {
    const { workerId } = this.active;
    const { leaseMs } = this.environment;
    return this.retryUntilCutOff((failedTries) =>
      this.runs.claim(tenantId, runId, workerId, leaseMs, failedTries > 0),
    );
  }

  /** Undefined: the run was canceled, or its ids came too late and the sweeper queues it. */
  private readEager({ tenantId, runId }: EagerRun): Promise<ClaimedRun | undefined> {
    const minLeaseMs = this.environment.leaseMs / 2;
    return this.retryUntilCutOff(() =>
      this.runs.readEagerRun(tenantId, runId, this.active.workerId, minLeaseMs),
    );
  }

  private retryUntilCutOff(
    claim: (failedTries: number) => Promise<ClaimedRun | undefined>,
  ): Promise<ClaimedRun | undefined> {
    const { cutOff } = this.active;
    return unlessCutOff(
      retryTransient(claim, { maxTries: MAX_CLAIM_TRIES, signal: cutOff }),
      cutOff,
      (run) => run && void this.dispatcher.returnToQueue(run).catch(() => undefined),
    );
  }

  private async runTurn(
    run: ClaimedRun,
    log: () => Logger,
    span: Span | undefined,
  ): Promise<EndedTurn | undefined> {
    const controller = this.active.hold(run);
    const onFailure = (error: Error): void => {
      if (error instanceof AppendRefused) return void this.active.stopRefused(run);
      log().error('append failed', { err: error });
      controller.abort('lease-lost');
    };
    const { runs, tasks, messaging, tracing, written: metrics } = this;
    const writer = new EventWriter(run, { runs, tasks, messaging, metrics, tracing, onFailure });
    const metadata: Record<string, unknown> = {};
    const output = new TurnOutput(run, (added) => {
      Object.assign(metadata, added);
      writer.mergeMetadata(added);
    });
    const records = this.turns.recordsOf(run);
    const { signal } = controller;
    const claimedAt = performance.now();
    let isCutOff = false;
    let leave: (() => void) | undefined;
    try {
      this.publishWorking(run);
      leave = await this.fairStarts.enter(run.tenantId, signal);
      const heldSeconds = (performance.now() - claimedAt) / 1000;
      if (run.attempt === 1) this.starts.observe({}, run.waitedSeconds + heldSeconds, run.traceparent);
      await this.converse({ run, writer, output, metadata, records, signal }, span).catch((error: unknown) =>
        this.suspend(error, run, writer, signal, { span, log }),
      );
    } catch (error) {
      if (error instanceof AppendRefused || controller.signal.aborted) {
        log().info('run stopped', { attempt: run.attempt, reason: controller.signal.reason as StopReason });
      } else if (error instanceof DatabaseUnavailableError) {
        // Something that the platform read for the turn. It is no fault of the agent: the turn continues as after a shutdown.
        isCutOff = true;
        log().warn('run stopped: Postgres is not available', { err: error, attempt: run.attempt });
      } else {
        log().error('agent failed', { err: error, attempt: run.attempt });
        if (error instanceof AgentError) await this.noteError(run, error, log());
        if (error instanceof AgentCrash) await this.giveUp(run, error);
        else await this.failTurn(error, { writer, output, records });
      }
    } finally {
      writer.discard();
      records.discard();
      this.active.release(run);
      leave?.();
    }
    if (isCutOff || controller.signal.reason === 'shutdown') await this.dispatcher.returnToQueue(run);
    return writer.ended;
  }

  /**
   * Suspends the run if the agent waits for other tasks, a time or a person, or parks it if its journal does not fit the code of the
   * agent. Throws every other error.
   */
  private async suspend(
    error: unknown,
    run: ClaimedRun,
    writer: EventWriter,
    signal: AbortSignal,
    { span, log }: { span: Span | undefined; log: () => Logger },
  ): Promise<void> {
    const isParked = error instanceof JournalMismatch;
    if (!(isParked || error instanceof Suspension) || signal.aborted) throw error;
    span?.set({ 'baton.run.suspended': true });
    await writer.flush();
    if (!isParked) return this.turnEnds.suspend(run, error, signal);
    const { agent, problem, code } = error;
    log().warn('run parked: its agent has other code than before', { agent, problem, code });
    const { tenantId, taskId, runId, attempt } = run;
    const parked = { tenantId, taskId, runId, attempt, agent, problem, code };
    await retryTransient(() => this.runs.park(parked), { signal });
  }

  /** Take the runtime's output until it has ended the turn. Later output is dropped. */
  private async converse(speaking: RunningTurn, span: Span | undefined) {
    const { run, writer, output, records, signal } = speaking;
    const { agent, isPinned, version } = await this.agentOf(run, signal);
    const runtime = this.runtimes.get(agent.definition.runtime);
    span?.rename(`invoke_agent ${agent.slug}`);
    span?.set({ 'gen_ai.agent.name': agent.slug, 'baton.runtime': agent.definition.runtime });
    if (isPinned) await this.pinVersion(run, version, signal);
    // The agent need not wait for it, and its first events may share the transaction.
    const noted = isPinned ? undefined : this.noteVersion(run, version, signal);
    const limits = await retryTransient(() => this.limits.get(run.tenantId), { signal });
    writer.allow(new EventAllowance(limits, run.logged));
    output.remind(agent.definition.reminders);
    const log = {
      startedAt: run.snapshot.sequence,
      flush: async () => {
        await writer.flush();
        return writer.head;
      },
      keepArtifact: (artifactId: string) => output.keepArtifact(artifactId),
      wakeIn: (ms: number) => output.wakeIn(ms),
    };
    await this.charges.chargeTask(run, agent, signal);
    const turn = await this.turns.turnOf(run, agent, log, records, signal, span);
    const stop = eitherOf(signal, writer.refusal);
    const untilStopped = stoppedBy(stop);
    const startedAt = performance.now();
    let isFirst = true;
    const outputs = turn.secrets.scrub(turn, runtime.run(turn, stop));
    try {
      for (;;) {
        const next = await untilStopped(outputs.next());
        if (isFirst) this.firstOutput.observe({}, (performance.now() - startedAt) / 1000, span?.traceparent);
        isFirst = false;
        if (next.done) throw new TurnFailure('The agent returned without a final status');
        if (await this.writeOutput(next.value, speaking)) return;
      }
    } catch (error) {
      if (error instanceof AppendRefused) await this.active.stopRefused(run);
      throw error;
    } finally {
      await noted;
      // A runtime that does not end must not block the worker.
      const windUp = outputs.return().catch(() => undefined);
      if (signal.aborted) await within(windUp, WIND_UP_MS);
    }
  }

  /** The agent as this attempt executes it: its newest version, or the one with which its pinned task has begun. */
  private async agentOf(
    run: ClaimedRun,
    signal: AbortSignal,
  ): Promise<{ agent: Agent; isPinned: boolean; version: RunVersion }> {
    const newest = await retryTransient(
      () => this.directory.findIncludingDeleted(run.tenantId, run.agentId),
      { signal },
    );
    if (!newest) throw new TurnFailure('The agent no longer exists');
    const present = this.runtimes.get(newest.definition.runtime).codeOf?.(newest);
    const agent = await retryTransient(() => this.pinned.versionFor(run, newest, present), { signal });
    const isPinned = newest.definition.versions === 'pinned';
    // Only pinned tasks ask for the code.
    const code = isPinned ? (agent.code ?? present) : undefined;
    return { agent, isPinned, version: { version: agent.version, code, label: agent.label } };
  }

  /**
   * Later attempts of a pinned task run what the first one has noted. So it is there before this attempt has any effect: if its worker
   * dies in between, the next attempt may run another version.
   */
  private async pinVersion(run: ClaimedRun, noted: RunVersion, signal: AbortSignal): Promise<void> {
    if (noted.version === undefined && noted.code === undefined) return;
    const isCurrent = await retryTransient(() => this.runs.noteAgentVersion(run, noted), { signal });
    if (isCurrent) return;
    await this.active.stopRefused(run);
    throw new AppendRefused('another attempt has noted its version');
  }

  /** Agents of the catalog have versions, installed ones code: which this attempt runs. Never rejects: the turn continues without. */
  private async noteVersion(run: ClaimedRun, noted: RunVersion, signal: AbortSignal): Promise<void> {
    if (noted.version === undefined && noted.code === undefined) return;
    const { tenantId, taskId, runId } = run;
    await retryTransient(() => this.runs.noteAgentVersion(run, noted), { signal }).catch((err: unknown) => {
      this.logger.warn('the version of an agent could not be saved', { err, tenantId, taskId, runId });
    });
  }

  /** @returns whether the turn is over */
  private async writeOutput(produced: AgentOutput, turn: RunningTurn): Promise<boolean> {
    const { writer, output, records } = turn;
    for (const { payload, end, restores } of output.entries(produced)) {
      assertSize(payload, this.environment.maxEventBytes);
      if (restores && payload.$case === 'artifactUpdate') {
        payload.value.append = await restoreArtifact(this.tasks, turn, restores);
      }
      if (end) {
        if (end.state === TaskState.TASK_STATE_FAILED) await records.storeHeld();
        // Before the end is written: an attempt that repeats the end charges nothing twice.
        await this.charges.chargeReported(turn.run, turn.metadata);
        await writer.end(payload, end);
        this.finished.inc({ outcome: taskStateToJSON(end.state) });
        return true;
      }
      await writer.write(payload);
    }
    return false;
  }

  /** End the turn as failed. The caller learns that it failed; the operator's log has the reason. */
  private async failTurn(
    error: unknown,
    { writer, output, records }: Pick<RunningTurn, 'writer' | 'output' | 'records'>,
  ): Promise<void> {
    const own = error instanceof TurnFailure;
    if (own && error.limit !== undefined) this.metrics.limitExceeded.inc({ limit: error.limit });
    const text = own ? error.message : 'The agent stopped with an unexpected error';
    const state = TaskState.TASK_STATE_FAILED;
    const outcome = own ? null : 'agent-threw';
    const reason = messageWithCause(error);
    for (const { payload } of output.rest()) await writer.write(payload, false);
    await records.storeHeld();
    await writer.end(output.platformStatus(state, text), { state, outcome, error: reason });
    this.finished.inc({ outcome: taskStateToJSON(state) });
  }

  /** Save the error of a failed turn, for the author of the agent. The turn ends even if this fails. */
  private async noteError(run: ClaimedRun, { detail }: AgentError, log: Logger): Promise<void> {
    const error = { ...detail, attempt: run.attempt, at: clock.date().toISOString() };
    await this.runs.noteError(run, error).catch((reason: unknown) => {
      log.warn('the error of a run could not be saved', { err: reason });
    });
  }

  /** The agent's process has died. The run is tried again, as after the death of its worker. */
  private async giveUp(run: ClaimedRun, { message, detail, hadCompany }: AgentCrash): Promise<void> {
    const { attempt } = run;
    // First: a heartbeat under way would extend the lease again.
    this.active.release(run);
    const at = clock.date().toISOString();
    await this.runs.giveUp(run, { ...detail, attempt, at, crash: message, runsAlone: hadCompany });
  }

  private publishWorking(run: ClaimedRun): void {
    if (!run.workingEvent?.isAppended) return;
    const { sequence, payload } = run.workingEvent;
    const event = { sequence, attempt: run.attempt, json: serializePayload(payload) };
    const { tenantId, taskId } = run;
    void this.messaging.publishTask(tenantId, taskId, { lastSequence: sequence, events: [event] });
    // Also for the event that accepted the turn. If the queue is away, the sweep finds due configs.
    if (run.hasPushConfigs) this.messaging.enqueuePushes([{ tenantId, taskId }]).catch(() => undefined);
  }
}

/** The error and its causes, for the run's record. */
function messageWithCause(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  return error.cause instanceof Error ? `${error.message}: ${error.cause.message}` : error.message;
}
