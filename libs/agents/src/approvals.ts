import { type Message, type Part, TaskState, type TaskStatus } from '@baton/a2a';
import { z } from 'zod';

/** A call that a person must approve before it is made. */
export interface ApprovalRequest {
  /**
   * Unlike the model's own id of it, no other call of the task has the same. Of a call further down it begins with the
   * call that has led there: `call-1-2/call-3-1` is the call `call-3-1` of the child of `call-1-2`.
   */
  callId: string;
  tool: string;
  description: string;
  input: unknown;
  /** Name of the MCP server whose tool it is. */
  server?: string | undefined;
  /** Of a call further down: slugs of the agents from the one whose task this is to the one that asks. */
  agents?: string[] | undefined;
}

/** What a person has said about a call. */
export interface Decision {
  callId: string;
  approved: boolean;
  /** Why; the model gets to know it when the call is refused. */
  reason?: string;
}

/** What a person has said about calls of a child, by the ids that they have there. */
export interface ApprovalAnswer {
  /** The same in every attempt, and another one for every answer to the child. */
  number: number;
  decisions: Decision[];
}

/** Longest reason that an answer takes, in characters. */
export const MAX_REASON = 10_000;

/** Metadata of a message that an agent has sent to its child. It only takes rights away, so anybody may write it. */
const SENDER = 'baton.sender';
export const SENT_BY_AGENT = { [SENDER]: 'agent' };

/** Whether an agent has said this, and no person. */
export const isSentByAgent = ({ metadata }: Pick<Message, 'metadata'>): boolean =>
  metadata?.[SENDER] === 'agent';

// What an agent elsewhere asks stands in a text that a person reads: it must not look like more lines of it.
const oneLine = (max: number) =>
  z
    .string()
    .min(1)
    .max(max)
    .transform((text) => text.replaceAll(/[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]+/gu, ' '));

const request = z.object({
  callId: z.string().min(1).max(1000),
  tool: oneLine(200),
  description: z.string().max(100_000).catch(''),
  input: z.unknown(),
  server: oneLine(200).optional().catch(undefined),
  agents: z.array(oneLine(200)).max(100).optional().catch(undefined),
});

/**
 * Whether a task waits for a person to approve calls: it is input-required, and its status has a data part
 * `{"approval": …}`. An llm agent's status is written by its runtime and never by its model, so a model can neither
 * hide such a question nor invent one. Any other agent may write what it wants: then a person is asked.
 */
export const asksForApproval = (status: TaskStatus | undefined): boolean => approvalParts(status).length > 0;

/** What a task asks a person to approve; undefined if it can't be read. */
export function approvalsOf(status: TaskStatus | undefined): ApprovalRequest[] | undefined {
  const parsed = z.array(request).safeParse(approvalParts(status).map(({ approval }) => approval));
  return parsed.success ? parsed.data : undefined;
}

/** What a child of this agent's asks, as the agent's own task asks it. */
export function raised(
  asked: ApprovalRequest,
  place: { callId: string; agent: string; child: string },
): ApprovalRequest {
  const { callId, agent, child } = place;
  const [first, ...others] = asked.agents ?? [];
  const below = first === undefined || first === child ? others : [first, ...others];
  return { ...asked, callId: `${callId}/${asked.callId}`, agents: [agent, child, ...below] };
}

function approvalParts(status: TaskStatus | undefined): { approval: unknown }[] {
  if (status?.state !== TaskState.TASK_STATE_INPUT_REQUIRED) return [];
  return (status.message?.parts ?? []).map(valueOf).filter(hasApproval);
}

const valueOf = ({ content }: Part): unknown => (content?.$case === 'data' ? content.value : undefined);

const hasApproval = (value: unknown): value is { approval: unknown } =>
  typeof value === 'object' && value !== null && 'approval' in value;
