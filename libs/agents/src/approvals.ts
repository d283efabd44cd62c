import { type Message, type Part, TaskState, type TaskStatus } from '@baton/a2a';
import { z } from 'zod';
import { oneLine } from './one-line.js';

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
  /** Set where guests of a public host may answer. */
  guests?: true | undefined;
  /** Set where the owner of the task may not answer itself. */
  by?: 'other' | undefined;
  /** ISO 8601: from then on the call counts as refused. */
  expiresAt?: string | undefined;
  /** The call was sent, and its outcome is not known. To approve it is to make it again. */
  unknownOutcome?: true | undefined;
  /** The tool itself asks, with a form or with an address to open. To approve it is to answer with `input`, or to have opened the address. */
  question?: { requestedSchema: Record<string, unknown> } | { url: string } | undefined;
  /** For a call further down: slugs of the agents from the one whose task this is to the one that asks. */
  agents?: string[] | undefined;
}

/** The principal that answered, and the time. */
export interface Approver {
  /** Key of the principal. */
  principal: string;
  /** ISO 8601: when the answer was accepted. */
  at: string;
}

/** The decision of a person about a call. */
export interface Decision {
  callId: string;
  approved: boolean;
  /** The reason. The model reads it if the call is refused. */
  reason?: string;
  /** For an approved call: the person changed its input to this. */
  input?: unknown;
  /** Unset: the question has expired, or an earlier release took the answer. */
  by?: Approver;
}

/** A person's decisions about calls of a child, with the child's call ids. */
export interface ApprovalAnswer {
  /** Identifies the answer: the same in every attempt, and different for each answer to the child. */
  number: number;
  decisions: Decision[];
  by?: Approver;
}

/** Maximum length of a reason, in characters. */
export const MAX_REASON = 10_000;

/** Metadata of a message from an agent to its child. It only removes rights, so it need not be protected. */
const SENDER = 'baton.sender';
export const SENT_BY_AGENT = { [SENDER]: 'agent' };

/** Whether an agent sent the message, and not a person. */
export const isSentByAgent = ({ metadata }: Pick<Message, 'metadata'>): boolean =>
  metadata?.[SENDER] === 'agent';

/** Metadata of a message with which a principal has answered. Only the platform writes it. Values of callers are dropped. */
const APPROVER = 'baton.approver';
const approver = z.object({ principal: z.string(), at: z.iso.datetime() });

/** The principal that answered with a message. */
export const approverOf = ({ metadata }: Pick<Message, 'metadata'>): Approver | undefined =>
  approver.safeParse(metadata?.[APPROVER]).data;

/** The metadata of a message from this approver; unset = of one that answers nothing. */
export function withApprover(metadata: Message['metadata'], by?: Approver): Message['metadata'] {
  if (!by && !(metadata && APPROVER in metadata)) return metadata;
  const { [APPROVER]: _, ...others } = metadata ?? {};
  return by ? { ...others, [APPROVER]: by } : others;
}

// The question of a remote agent is quoted in a text for a person.
const line = (max: number) => z.string().min(1).max(max).transform(oneLine);

const request = z.object({
  callId: z.string().min(1).max(1000),
  tool: line(200),
  description: z.string().max(100_000).catch(''),
  input: z.unknown(),
  server: line(200).optional().catch(undefined),
  guests: z.literal(true).optional().catch(undefined),
  by: z.literal('other').optional().catch(undefined),
  expiresAt: z.iso.datetime().optional().catch(undefined),
  unknownOutcome: z.literal(true).optional().catch(undefined),
  question: z
    .union([
      z.object({ requestedSchema: z.record(z.string(), z.unknown()) }),
      z.object({ url: z.url({ protocol: /^https?$/ }).max(2048) }),
    ])
    .optional()
    .catch(undefined),
  agents: z.array(line(200)).max(100).optional().catch(undefined),
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
