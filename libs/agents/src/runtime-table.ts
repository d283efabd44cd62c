import type { Agent } from '@baton/a2a';
import { type Turn, type AgentOutput } from './agent-runtime.js';

/**
 * Runs one kind of agent. `run` yields the agent's output in order and returns at the end of the turn. A turn ends with
 * a terminal or interrupted status, or with a bare message. When `signal` aborts (cancel, lost lease, shutdown), `run`
 * must stop soon, and later output is dropped. A thrown error fails the task, unless it is a `Suspension` or a `JournalMismatch`.
 */
export interface AgentRuntime {
  /** The `runtime` of definitions. RUNTIME_CONFIGS has the schema of their `config`. */
  readonly name: string;
  run(turn: Turn, signal: AbortSignal): AsyncIterable<AgentOutput>;
  /** Hash of the code that the agent has in this worker. Undefined: it has none, or it is unknown. */
  codeOf?(agent: Pick<Agent, 'slug' | 'code' | 'origin'>): string | undefined;
}

/** Finds a runtime by its name. */
export class RuntimeTable {
  private readonly byName: ReadonlyMap<string, AgentRuntime>;

  constructor(runtimes: readonly AgentRuntime[]) {
    this.byName = new Map(runtimes.map((runtime) => [runtime.name, runtime]));
  }

  /** Throws an Error that lists the known runtimes. */
  get(name: string): AgentRuntime {
    const runtime = this.byName.get(name);
    if (runtime) return runtime;
    throw new Error(`there is no runtime "${name}"; there are ${[...this.byName.keys()].join(', ')}`);
  }
}
