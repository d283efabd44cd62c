import { type Agent, isEnabled } from '@baton/a2a';
import { Environment } from '@baton/config';
import { Injectable } from '@nestjs/common';
import { AgentList } from '../../../../agent-list.js';
import { ChildRefusal, ChildTasks } from '../../../../child-tasks.js';
import { Suspension, type Turn } from '../../../../runtime.js';
import type { LlmConfig } from '../../config.js';
import type { AgentTool, JsonSchema, OpenTools, ToolSource } from '../agent-tool.js';
import type { Callees } from './callees-config.js';
import { replyOf } from './callee-reply.js';

/** Longest name of a tool that every provider takes. */
const MAX_NAME = 64;

const INPUT: JsonSchema = {
  type: 'object',
  properties: {
    message: {
      type: 'string',
      description: 'What the agent is to do, with all it has to know: it does not see this conversation.',
    },
    data: { type: 'object', description: 'Data that goes with the message.' },
    taskId: {
      type: 'string',
      description: 'Only to answer an agent that has asked: the taskId of its question.',
    },
  },
  required: ['message'],
  additionalProperties: false,
};

interface Asked {
  message: string;
  data?: Record<string, unknown>;
  taskId?: string;
}

/** An agent that this one may ask; undefined: there is none of that slug. */
interface Callee {
  slug: string;
  agent: Agent | undefined;
  description: string;
}

/** Other agents of the tenant, each as a tool. A call is a task of its own, for which the run is suspended. */
@Injectable()
export class CalleeTools implements ToolSource {
  constructor(
    private readonly agents: AgentList,
    private readonly children: ChildTasks,
    private readonly environment: Environment,
  ) {}

  async open(turn: Turn, config: LlmConfig): Promise<OpenTools> {
    const { agents } = config;
    const found = agents.length > 0 ? await this.calleesOf(turn, agents) : [];
    const tools = found.map((callee) => this.toolOf(turn, config, callee));
    return { tools, close: async () => undefined };
  }

  private async calleesOf({ tenantId, agent: self }: Turn, callees: Callees): Promise<Callee[]> {
    const list = await this.agents.list(tenantId);
    if (callees === 'all') {
      const others = list.filter((agent) => agent.id !== self.id && isEnabled(agent));
      return others.map((agent) => ({ slug: agent.slug, agent, description: descriptionOf(agent) }));
    }
    return callees.map(({ agent: slug, description }) => {
      const agent = list.find((known) => known.slug === slug);
      return { slug, agent, description: description ?? (agent ? descriptionOf(agent) : '') };
    });
  }

  private toolOf(turn: Turn, config: LlmConfig, { slug, agent, description }: Callee): AgentTool {
    return {
      name: nameOf(slug),
      description: `Asks the agent ${slug} and answers with its reply. ${description}`.trim(),
      inputSchema: INPUT,
      needsApproval: false,
      repeat: 'again',
      execute: async (input, { id, lane, signal }) => {
        if (!agent) return { ok: false, content: `There is no agent "${slug}".` };
        const { message, data, taskId } = input as Asked;
        const limits = this.limitsOf(config);
        try {
          const request = {
            callId: id,
            lane,
            agent,
            message,
            data,
            limits,
            signal,
            ...(taskId && { taskId }),
          };
          const child = await this.children.call(turn, request);
          if (child.isAtWork) throw new Suspension([child.task.id]);
          return replyOf(agent, child);
        } catch (error) {
          if (!(error instanceof ChildRefusal)) throw error;
          return { ok: false, content: error.message };
        }
      },
    };
  }

  private limitsOf({ delegation: { depth = Infinity, tasks = Infinity } }: LlmConfig) {
    const { delegationDepth, delegationTasks } = this.environment;
    return { depth: Math.min(depth, delegationDepth), tasks: Math.min(tasks, delegationTasks) };
  }
}

/** A slug has no underscore, so the names of two agents are never the same. */
function nameOf(slug: string): string {
  const name = `ask_${slug}`;
  return name.length <= MAX_NAME ? name : slug;
}

function descriptionOf({ definition: { description, skills } }: Agent): string {
  if (skills.length === 0) return description;
  return `${description} Skills: ${skills.map((skill) => `${skill.name} (${skill.description})`).join('; ')}`;
}
