import {
  type Agent,
  isEnabled,
  type ListedAgent,
  TaskState,
  type Part,
  type Task,
  eventKindOf,
  isInterrupted,
  textOf,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { Injectable } from '@nestjs/common';
import { type ChildTask, ChildTasks } from '../../../child-tasks.js';
import { ChildRefusal } from '../../../child-refusal.js';
import { AgentList } from '../../../agent-list.js';
import { approvalsOf, asksForApproval, raised } from '../../../approvals.js';
import { signInReason } from '../../../sign-in-request.js';
import { ChildNeedsSignIn } from '../../../child-needs-sign-in.js';
import { type Turn } from '../../../agent-runtime.js';
import { Suspension } from '../../../suspension.js';
import { ApprovalsPending } from '../approval/approvals-pending.js';
import type { LlmConfig, Callees } from '../llm-config.js';
import type {
  AgentTool,
  ToolCallContext,
  JsonSchema,
  OpenTools,
  ToolResult,
  ToolSource,
} from './tool-sources.js';

/** Maximum length of a tool name that every provider accepts. */
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

interface CalleeArguments {
  message: string;
  data?: Record<string, unknown>;
  taskId?: string;
}

/** An agent that this one can call. There may be none with that slug. */
interface Callee {
  slug: string;
  description: string;
}

/** Other agents of the tenant, each as a tool. A call creates a child task, and the run is suspended until it ends. */
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
      return others.map((agent) => ({ slug: agent.slug, description: descriptionOf(agent) }));
    }
    return callees.map(({ agent: slug, description }) => {
      const agent = list.find((known) => known.slug === slug);
      return { slug, description: description ?? (agent ? descriptionOf(agent) : '') };
    });
  }

  private toolOf(turn: Turn, config: LlmConfig, { slug, description }: Callee): AgentTool {
    return {
      name: nameOf(slug),
      description: `Asks the agent ${slug} and answers with its reply. ${description}`.trim(),
      inputSchema: INPUT,
      needsApproval: false,
      repeat: 'again',
      execute: async (input, call) => {
        // Its settings, which may be large, are read only where it is called.
        const agent = await this.agents.find(turn.tenantId, slug);
        if (!agent || agent.status) return { ok: false, content: `There is no agent "${slug}".` };
        try {
          const child = await this.childOf(turn, config, agent, input as CalleeArguments, call);
          if (child.isAtWork) throw new Suspension([child.task.id]);
          const reason = signInReason(child.task.status);
          if (reason !== undefined) throw new ChildNeedsSignIn(child.task.id, `${slug} says: ${reason}`);
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

  /** The child task of a call, after it has received a person's answer, if there is one. */
  private async childOf(
    turn: Turn,
    config: LlmConfig,
    agent: Agent,
    { taskId, ...asked }: CalleeArguments,
    { id: callId, lane, signal, answer, traceparent }: ToolCallContext,
  ): Promise<ChildTask> {
    const limits = this.limitsOf(config);
    const ids = { callId, lane, ...(taskId && { taskId }) };
    const request = { ...asked, ...ids, agent, limits, signal, traceparent };
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
 * Forwards a child's request for approval to the parent's task, up to the task that has a caller. The parent's model
 * never sees the question, so it cannot answer it.
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
    content: `${slug} asks a person for an approval that cannot be read, so no person was asked.`,
  };
}

/** A slug has no underscore, so two agents never have the same tool name. */
function nameOf(slug: string): string {
  const name = `ask_${slug}`;
  return name.length <= MAX_NAME ? name : slug;
}

function descriptionOf({ definition: { description, skills } }: ListedAgent): string {
  if (skills.length === 0) return description;
  return `${description} Skills: ${skills.map((skill) => `${skill.name} (${skill.description})`).join('; ')}`;
}

const { TASK_STATE_COMPLETED, TASK_STATE_CANCELED, TASK_STATE_REJECTED, TASK_STATE_AUTH_REQUIRED } =
  TaskState;

/** The result of a child task, for the model and for the callers of the task. */
export function replyOf({ slug }: Agent, { task, depth }: ChildTask): ToolResult {
  const state = task.status?.state ?? TaskState.TASK_STATE_UNSPECIFIED;
  const statusText = textOf(task.status?.message?.parts ?? []);
  const shown = (content: unknown) => ({ kind: 'agent-reply', data: { agent: slug, depth, content } });
  if (state === TASK_STATE_COMPLETED) {
    const content = contentOf(task, statusText);
    return { ok: true, content, shown: shown(content) };
  }
  if (isInterrupted(state)) {
    const needs = state === TASK_STATE_AUTH_REQUIRED ? 'auth-required' : 'input-required';
    const asked = statusText === '' ? 'It asks for more.' : statusText;
    const text = `${slug} has not finished (${needs}). It says: ${asked}\nTo answer, call this tool again with taskId "${task.id}".`;
    return {
      ok: true,
      content: { state: needs, question: statusText, taskId: task.id },
      text,
      shown: shown(asked),
    };
  }
  const how =
    state === TASK_STATE_CANCELED
      ? 'was canceled'
      : state === TASK_STATE_REJECTED
        ? 'has refused'
        : 'has failed';
  return { ok: false, content: `${slug} ${how}${statusText === '' ? '' : `: ${statusText}`}` };
}

/** The reply of a child: a text, or `{text, data, files}` with the names of the files. */
function contentOf({ artifacts }: Task, statusText: string): unknown {
  const own = artifacts.filter((artifact) => eventKindOf(artifact) === undefined);
  const texts = own.map(({ parts }) => textOf(parts)).filter((text) => text !== '');
  // Agents reply with artifacts, with the message of their last status, or with both.
  const text = [...texts, ...(statusText === '' || texts.includes(statusText) ? [] : [statusText])].join(
    '\n',
  );
  const parts = own.flatMap((artifact) => artifact.parts);
  const data = parts.flatMap(({ content }) => (content?.$case === 'data' ? [content.value as unknown] : []));
  const files = parts.filter(isFile).map(({ filename, mediaType }) => ({ name: filename, mediaType }));
  if (data.length === 0 && files.length === 0) return text;
  return {
    ...(text !== '' && { text }),
    ...(data.length > 0 && { data }),
    ...(files.length > 0 && { files }),
  };
}

const isFile = ({ content }: Part): boolean => content?.$case === 'raw' || content?.$case === 'url';
