import { Environment } from '@baton/config';
import type { Agent } from '@baton/a2a';
import { Injectable } from '@nestjs/common';
import type { AgentOutput, Turn } from '../../agent-runtime.js';
import type { AgentRuntime } from '../../runtime-table.js';
import { InstalledCode } from '../../installed-code.js';
import { AgentPools } from './agent-pools.js';
import { printingErrors } from './author-terminal.js';
import { converse } from './converse.js';
import { portsOf } from './turn-ports.js';
import { counter, Logger, Metrics } from '@baton/telemetry';
import { AgentError } from './agent-error.js';
import { StepPorts } from './step-ports.js';
import { TurnSteps } from './steps/turn-steps.js';
import { turnRequest } from './turn-request.js';

const COMPENSATED = counter(
  'baton_tasks_compensated_total',
  'Tasks that had to undo finished steps: the code has thrown, or another task was canceled. failed: a step is not undone',
  ['outcome'],
  [{ outcome: 'undone' }, { outcome: 'failed' }],
);

/**
 * Runs an unchanged `AgentExecutor` of `@a2a-js/sdk/server` in a process of its own. The code is in the worker's
 * folder `BATON_AGENTS_DIR/<slug>`. The database holds no path, so each worker may use another folder.
 */
@Injectable()
export class ExecutorRuntime implements AgentRuntime {
  readonly name = 'executor';

  constructor(
    private readonly environment: Environment,
    private readonly logger: Logger,
    private readonly metrics: Metrics,
    private readonly pools: AgentPools,
    private readonly code: InstalledCode,
    private readonly steps: StepPorts,
  ) {}

  async *run(turn: Turn, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    this.assertInstalled(turn.agent);
    const { tenantId, runId, task } = turn;
    const ids = { tenantId, taskId: task.id, runId, alone: turn.runsAlone ?? false };
    let steps: TurnSteps | undefined = await TurnSteps.open(turn, this.steps.ofTurn());
    if (steps.tools) yield* steps.tools.waitOn(signal);
    while (steps) {
      const request = await turnRequest(steps.journal);
      if (signal.aborted) return;
      const { pool, code } = this.pools.poolFor(turn);
      const stream = await pool.open(request, ids, portsOf(turn), signal);
      if (!stream) return;
      const output: TurnOutputs = this.counting(
        converse(stream, turn, steps, signal, this.logger, code),
        steps,
        signal,
      );
      steps = yield* this.environment.devMode ? printingErrors(output, turn.agent.slug) : output;
    }
  }

  /** Counts a turn that has undone steps. The reader stops reading at its end. */
  private async *counting<T>(
    output: AsyncGenerator<AgentOutput, T>,
    steps: TurnSteps,
    signal: AbortSignal,
  ): AsyncGenerator<AgentOutput, T> {
    let error: unknown;
    try {
      return yield* output;
    } catch (thrown) {
      error = thrown;
      throw thrown;
    } finally {
      const { isUndone, journal } = steps;
      const isOver = !signal.aborted && (error === undefined || error instanceof AgentError);
      if (isOver && isUndone !== undefined) {
        const hasFailed = !isUndone || (error !== undefined && journal.compensating?.canceled === true);
        this.metrics.get(COMPENSATED).inc({ outcome: hasFailed ? 'failed' : 'undone' });
      }
    }
  }

  codeOf(agent: Pick<Agent, 'slug' | 'code' | 'origin'>): string | undefined {
    return this.code.codeOf(agent);
  }

  private assertInstalled({ slug, origin }: Turn['agent']): void {
    // Only the operator may provide code. A tenant's own agent must not reach a folder of the operator.
    if (origin !== 'installed')
      throw new Error(`agent "${slug}" is not an installed agent: it has no code to run`);
    if (!this.environment.agentsDir)
      throw new Error(`BATON_AGENTS_DIR is not set: this worker cannot run agent "${slug}"`);
  }
}

/** What a turn publishes, and the steps with which it begins anew. */
type TurnOutputs = AsyncGenerator<AgentOutput, TurnSteps | undefined>;
