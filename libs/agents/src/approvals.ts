import { type Message, type Part, TaskState, type TaskStatus } from '@baton/a2a';
import { z } from 'zod';

/** A tool call that a person must approve. */
export interface ApprovalRequest {
  /**
   * Unique in the task, unlike the model's own id. The id of a child's call starts with the call that created the
   * child: `call-1-2/call-3-1` is the call `call-3-1` of the child of `call-1-2`.
   */
  callId: string;
  tool: string;
  description: string;
  input: unknown;
  /** Name of the MCP server that provides the tool. */
  server?: string | undefined;
  /** For a child's call: slugs of the agents from this task's agent down to the one that asks. */
  agents?: string[] | undefined;
}

/** A person's decision about a call. */
export interface Decision {
  callId: string;
  approved: boolean;
  /** The reason. The model reads it if the call is refused. */
  reason?: string;
}

/** A person's decisions about calls of a child, with the child's call ids. */
export interface ApprovalAnswer {
  /** Identifies the answer: the same in every attempt, and different for each answer to the child. */
  number: number;
  decisions: Decision[];
}

/** Maximum length of a reason, in characters. */
export const MAX_REASON = 10_000;

/** Metadata of a message from an agent to its child. It only removes rights, so it need not be protected. */
const SENDER = 'baton.sender';
export const SENT_BY_AGENT = { [SENDER]: 'agent' };

/** Whether an agent sent the message, and not a person. */
export const isSentByAgent = ({ metadata }: Pick<Message, 'metadata'>): boolean =>
  metadata?.[SENDER] === 'agent';

// Texts of remote agents become part of a text that a person reads. They must not look like further lines of it.
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
 * `{"approval": …}`. The runtime writes the status of an llm agent, so its model can neither hide nor invent such a
 * question. Other agents can write any status. Then a person is asked.
 */
export const asksForApproval = (status: TaskStatus | undefined): boolean => approvalParts(status).length > 0;

/** The calls that a task asks a person to approve. Undefined if they are invalid. */
export function approvalsOf(status: TaskStatus | undefined): ApprovalRequest[] | undefined {
  const parsed = z.array(request).safeParse(approvalParts(status).map(({ approval }) => approval));
  return parsed.success ? parsed.data : undefined;
}

/** Converts a child's request to a request of the agent's own task. */
export function raised(
  asked: ApprovalRequest,
  origin: { callId: string; agent: string; child: string },
): ApprovalRequest {
  const { callId, agent, child } = origin;
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
