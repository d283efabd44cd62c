import { type Agent, isEnabled } from '@baton/a2a';
import { Environment } from '@baton/config';
import { Injectable } from '@nestjs/common';
import { AgentList, ChildRefusal, type ChildTask, ChildTasks } from '../../../../ports.js';
import { approvalsOf, asksForApproval, raised } from '../../../../approvals.js';
import { Suspension, type Turn } from '../../../../runtime.js';
import { ApprovalsPending } from '../../approval/approval.js';
import type { LlmConfig } from '../../config.js';
import type {
  AgentTool,
  ToolCallContext,
  JsonSchema,
  OpenTools,
  ToolResult,
  ToolSource,
} from '../agent-tool.js';
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
      execute: async (input, call) => {
        if (!agent) return { ok: false, content: `There is no agent "${slug}".` };
        try {
          const child = await this.childOf(turn, config, agent, input as Asked, call);
          if (child.isAtWork) throw new Suspension([child.task.id]);
          return asksForApproval(child.task.status)
            ? askAbove(turn, agent, child, call)
            : replyOf(agent, child);
        } catch (error) {
          if (!(error instanceof ChildRefusal)) throw error;
          return { ok: false, content: error.message };
        }
      },
    };
  }

  /** The child of a call as it is, once it has got what a person has said to it. */
  private async childOf(
    turn: Turn,
    config: LlmConfig,
    agent: Agent,
    { taskId, ...asked }: Asked,
    { id: callId, lane, signal, answer }: ToolCallContext,
  ): Promise<ChildTask> {
    const limits = this.limitsOf(config);
    const request = { ...asked, callId, lane, agent, limits, signal, ...(taskId && { taskId }) };
    const child = await this.children.call(turn, request);
    if (!answer || !asksForApproval(child.task.status)) return child;
    return this.children.answer(turn, { ...answer, callId, agent, taskId: child.task.id, signal });
  }

  private limitsOf({ delegation: { depth = Infinity, tasks = Infinity } }: LlmConfig) {
    const { delegationDepth, delegationTasks } = this.environment;
    return { depth: Math.min(depth, delegationDepth), tasks: Math.min(tasks, delegationTasks) };
  }
}

/**
 * What a child asks a person is asked by the parent's task in turn, up to the one that has a caller: the model of the
 * parent never gets to see the question, so it can't answer it.
 */
function askAbove(
  turn: Turn,
  { slug }: Agent,
  { task }: ChildTask,
  { id: callId }: ToolCallContext,
): ToolResult {
  const requests = approvalsOf(task.status);
  if (requests) {
    const origin = { callId, agent: turn.agent.slug, child: slug };
    throw new ApprovalsPending(requests.map((request) => raised(request, origin)));
  }
  return {
    ok: false,
    content: `${slug} asks a person for an approval that can't be read, so nobody was asked.`,
  };
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
