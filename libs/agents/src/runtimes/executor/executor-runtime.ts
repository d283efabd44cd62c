import { COMMAND_LINE, Environment } from '@baton/config';
import { Logger } from '@baton/telemetry';
import { type Agent, agentOrigin, detailsToJson, Message, Role, Task, TaskState } from '@baton/a2a';
import { Injectable, type OnApplicationShutdown } from '@nestjs/common';
import { ChildTasks } from '../../ports.js';
import { AgentList } from '../../agent-list.js';
import { type AgentOutput, type Turn, historyBefore } from '../../agent-runtime.js';
import { type AgentRuntime } from '../../runtime-table.js';
import { AgentPool } from './agent-pool.js';
import { printingErrors } from './author-terminal.js';
import { converse, type TurnPorts } from './turn-stream.js';
import { processOptions } from './executor-config.js';
import { ComputePool } from '@baton/compute';
import { ModelCalls } from '../llm/model-calls.js';
import { Metrics } from '@baton/telemetry';
import { ToolSources } from '../llm/tools/tool-sources.js';
import { TurnTools } from './turn-tools.js';
import { TurnModels } from './turn-models.js';
import { TurnSteps } from './turn-steps.js';
import { ProcessSlots } from './process-slots.js';
import type { LoadFault, TurnRequest } from './protocol.js';

/** What an `InstalledAgent` says about its code. */
interface AgentFolder {
  slug: string;
  /** Hash of its code. */
  code: string;
  definition: { config: unknown };
}

interface PoolOfAgent {
  slug: string;
  /** JSON of the settings of its `agent.yaml`. */
  settings: string;
  pool: AgentPool;
  /** Hash of the code that its processes run. Undefined: unknown. */
  code: string | undefined;
}

/**
 * Runs an unchanged `AgentExecutor` of `@a2a-js/sdk/server` in a process of its own. The code is in the worker's
 * folder `BATON_AGENTS_DIR/<slug>`. The database holds no path, so each worker may use another folder.
 */
@Injectable()
export class ExecutorRuntime implements AgentRuntime, OnApplicationShutdown {
  readonly name = 'executor';
  /** By agent, or by agent and tenant. */
  private readonly pools = new Map<string, PoolOfAgent>();
  /** Hashes of the code of the agents. */
  private readonly codes = new Map<string, string>();
  private readonly slots: ProcessSlots;
  private readonly models: TurnModels;
  private readonly tools: TurnTools;

  constructor(
    private readonly environment: Environment,
    private readonly logger: Logger,
    private readonly agents: AgentList,
    private readonly children: ChildTasks,
    models: ModelCalls,
    pool: ComputePool,
    sources: ToolSources,
    metrics: Metrics,
  ) {
    this.tools = new TurnTools(sources, pool, metrics);
    this.models = new TurnModels(models, pool);
    this.slots = new ProcessSlots(environment.executorTenantProcesses);
  }

  async *run(turn: Turn, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    this.assertInstalled(turn.agent);
    const { agents, children, environment } = this;
    const limits = { depth: environment.delegationDepth, tasks: environment.delegationTasks };
    const { tenantId, runId, task } = turn;
    const ids = { tenantId, taskId: task.id, runId, alone: turn.runsAlone ?? false };
    let steps: TurnSteps | undefined = await TurnSteps.open(turn, {
      agents,
      children,
      limits,
      models: this.models.ofTurn(),
      tools: this.tools.ofTurn(),
    });
    while (steps) {
      const request = await turnRequest(steps);
      if (signal.aborted) return;
      const { pool, code } = this.poolOf(turn);
      const stream = await pool.open(request, ids, portsOf(turn), signal);
      if (!stream) return;
      const output = converse(stream, turn, steps, signal, this.logger, code);
      steps = yield* environment.devMode ? printingErrors(output, turn.agent.slug) : output;
    }
  }

  codeOf({ slug, code }: Pick<Agent, 'slug' | 'code'>): string | undefined {
    return code ?? this.codes.get(slug);
  }

  /** All runs have ended or returned to the queue before this call. */
  async onApplicationShutdown(): Promise<void> {
    await Promise.all([...this.pools.values()].map(({ pool }) => pool.close()));
  }

  /** Notes the hash of an agent's code, which the processes that start from now on load. */
  useCode({ slug, code }: Pick<AgentFolder, 'slug' | 'code'>): void {
    this.codes.set(slug, code);
  }

  /**
   * Loads an agent of `BATON_AGENTS_DIR` again, because its files have changed. Running turns end with the old code, and
   * new turns run the new one. If it cannot be loaded, the old code goes on.
   *
   * @param signal ends the attempt, for a module that is still loading
   * @returns why it could not be loaded; undefined if it is loaded
   */
  async reload(
    { slug, code, definition: { config } }: AgentFolder,
    signal: AbortSignal,
  ): Promise<LoadFault | undefined> {
    const options = processOptions({ slug, config }, this.environment, this.logger);
    const pool = new AgentPool(options);
    const abandon = (): void => void pool.close();
    signal.addEventListener('abort', abandon);
    const fault = await pool.warmUp();
    signal.removeEventListener('abort', abandon);
    if (fault) {
      await pool.close();
      return fault;
    }
    this.useCode({ slug, code });
    for (const [key, known] of this.pools) {
      if (known.slug !== slug) continue;
      this.pools.delete(key);
      known.pool.retire();
    }
    // The process of a tenant starts with its first turn.
    if (isIsolated(config)) await pool.close();
    else this.pools.set(slug, { slug, settings: JSON.stringify(config), pool, code });
    return undefined;
  }

  private assertInstalled({ slug, origin }: Turn['agent']): void {
    // Only the operator may provide code. A tenant's own agent must not reach a folder of the operator.
    if (origin !== 'installed')
      throw new Error(`agent "${slug}" is not an installed agent: it has no code to run`);
    if (!this.environment.agentsDir)
      throw new Error(`BATON_AGENTS_DIR is not set: this worker can not run agent "${slug}"`);
  }

  private poolOf({ tenantId, agent: { slug, definition, code: pinned, folder } }: Turn): PoolOfAgent {
    const { config } = definition;
    const isolated = isIsolated(config) ? { tenantId, slots: this.slots } : undefined;
    const name = pinned === undefined ? slug : `${slug}@${pinned}`;
    const key = isolated ? `${name} ${tenantId}` : name;
    const settings = JSON.stringify(config);
    const known = this.pools.get(key);
    // In development only `reload` replaces code: after a broken save a new pool could not load it.
    if (known && (known.settings === settings || this.environment.devMode)) return known;
    const options = processOptions({ slug, config, folder }, this.environment, this.logger, isolated);
    const pool: AgentPool = new AgentPool({
      ...options,
      onEmpty: isolated || pinned !== undefined ? () => this.forget(key, pool) : undefined,
    });
    const made = { slug: name, settings, pool, code: pinned ?? this.codes.get(slug) };
    this.pools.set(key, made);
    // The settings have changed. Running turns finish with the old ones.
    known?.pool.retire();
    return made;
  }

  /** There may be many tenants: only those with a process have a pool. */
  private forget(key: string, pool: AgentPool): void {
    pool.retire();
    if (this.pools.get(key)?.pool === pool) this.pools.delete(key);
  }
}

const isIsolated = (config: unknown): boolean => (config as { isolation?: string }).isolation === 'tenant';

/**
 * The functions of the worker that a turn may call. Each call reads the secret again, so that a turn sees a rotated one. Its tenant
 * decides which agents may have it: it must list `agent:<slug>` among its origins.
 */
export function portsOf({ agent: { slug, definition }, secrets, console }: Turn): TurnPorts {
  const named = (definition.config as { secrets?: string[] }).secrets ?? [];
  return {
    console,
    secret: async (name) => {
      if (!named.includes(name)) {
        throw new SecretRefusal(
          `the agent "${slug}" may not read the secret "${name}": config.secrets of its agent.yaml does not name it`,
        );
      }
      const value = await secrets.get(name, [agentOrigin(slug)]);
      if (value !== undefined) return value;
      throw new SecretRefusal(
        `the tenant has no secret "${name}": store it with ${COMMAND_LINE} secrets set ${name} --origin ${agentOrigin(slug)}`,
      );
    },
  };
}

class SecretRefusal extends Error {
  override readonly name = 'SecretRefusal';
}

/**
 * Builds the request that an executor receives for a turn: the message with both ids, the stored task (from the second
 * turn on), the referenced tasks, `metadata` and `configuration` of the request, and those requested extensions that the agent declares. The earlier tasks of the
 * context are among the references, because an executor has no other way to read the conversation. An answer to
 * `waitForInput` is the result of a step, so the request is that of the turn that has asked.
 */
export async function turnRequest(steps: TurnSteps): Promise<TurnRequest> {
  const turn = steps.firstTurn;
  const { tenantId, task, message, details, referenceTasks } = turn;
  const declared = new Set(turn.agent.definition.extensions.map(({ uri }) => uri));
  const named = new Set(referenceTasks.map(({ id }) => id));
  const earlier = (await turn.earlierTasks()).filter(({ id }) => !named.has(id));
  const known = [...earlier, ...referenceTasks];
  const refers = known.length > 0 || message.referenceTaskIds.length > 0;
  const stored = storedTask(turn);
  const { recorded, compensating, lastState } = steps;
  return {
    tenantId,
    taskId: task.id,
    contextId: task.contextId,
    message: Message.toJSON({ ...message, taskId: task.id, contextId: task.contextId }),
    details: detailsToJson(details),
    extensions: turn.extensions.filter((uri) => declared.has(uri)),
    ...(stored && { task: Task.toJSON(stored) }),
    ...(recorded.length > 0 && { steps: recorded }),
    ...(compensating && { compensating }),
    ...(lastState !== undefined && { lastState }),
    ...(refers && { referenceTasks: known.map((reference) => Task.toJSON(reference)) }),
  };
}

/**
 * The task as it was when the message arrived. Executors read its status to see that the message is an answer, but the
 * stored status is `working` by now. So this restores the status that asked: only an interrupted task accepts another
 * message, and its question is the agent's last message.
 */
function storedTask(turn: Turn): Task | undefined {
  const before = historyBefore(turn);
  if (before.length === 0) return undefined;
  const asked = before.findLast(({ role }: Message) => role === Role.ROLE_AGENT);
  return {
    ...turn.task,
    status: {
      state: TaskState.TASK_STATE_INPUT_REQUIRED,
      message: asked,
      timestamp: turn.task.status?.timestamp,
    },
    // Messages of a crashed attempt of this turn come after the user's message. They are not part of the question.
    history: [...before, turn.message],
  };
}
