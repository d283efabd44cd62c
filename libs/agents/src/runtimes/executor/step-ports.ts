import { ComputePool } from '@baton/compute';
import { Environment } from '@baton/config';
import { Metrics } from '@baton/telemetry';
import { Injectable } from '@nestjs/common';
import { AgentList } from '../../agent-list.js';
import { ChildTasks } from '../../child-tasks.js';
import { ModelCalls } from '../llm/model-calls.js';
import { ToolSources } from '../llm/tools/tool-sources.js';
import type { TurnStepPorts } from './steps/turn-steps.js';
import { TurnModels } from './turn-models.js';
import { TurnTools } from './turn-tools.js';

/** The parts of the platform that the steps of agents in code call: other agents, models and tools. */
@Injectable()
export class StepPorts {
  private readonly models: TurnModels;
  private readonly tools: TurnTools;

  constructor(
    private readonly environment: Environment,
    private readonly agents: AgentList,
    private readonly children: ChildTasks,
    models: ModelCalls,
    sources: ToolSources,
    pool: ComputePool,
    metrics: Metrics,
  ) {
    this.tools = new TurnTools(sources, pool, metrics);
    this.models = new TurnModels(models, pool);
  }

  /** Those of one turn. */
  ofTurn(): TurnStepPorts {
    const { agents, children } = this;
    const { delegationDepth: depth, delegationTasks: tasks } = this.environment;
    return {
      agents,
      children,
      limits: { depth, tasks },
      models: this.models.ofTurn(),
      tools: this.tools.ofTurn(),
    };
  }
}
