import { parseJsonBody } from '@baton/a2a';
import { createHmac, timingSafeEqual } from 'node:crypto';

/** The content of the state of a call that asks a person. */
export interface McpCallState {
  taskId: string;
  /** The tool that was called. */
  tool: string;
  tenantId: string;
  /** Key of the principal that has called. */
  principal: string;
}

/** Time for the answer of a person. A later answer goes to the task itself, whose id is in the result of `task_status`. */
const LIFETIME_MS = 24 * 3_600_000;

/**
 * The state of a call as the client keeps it. It is readable, and signed with the master key of the installation, so any process
 * can check it.
 */
export function sealState(state: McpCallState, masterKey: Buffer, now: number): string {
  const body = Buffer.from(JSON.stringify({ ...state, expiresAt: now + LIFETIME_MS })).toString('base64url');
  return `${body}.${signatureOf(body, masterKey)}`;
}

/** The id of the task. Undefined if the state is forged, too old, or of another caller or tool. */
export function openState(
  sealed: unknown,
  expected: Omit<McpCallState, 'taskId'>,
  masterKey: Buffer,
  now: number,
): string | undefined {
  const [, body, signature] =
    (typeof sealed === 'string' && /^([\w-]{1,4096})\.([\w-]{43})$/.exec(sealed)) || [];
  if (body === undefined || signature === undefined) return undefined;
  if (!timingSafeEqual(Buffer.from(signature), Buffer.from(signatureOf(body, masterKey)))) return undefined;
  const state = parseJsonBody(Buffer.from(body, 'base64url').toString()) as McpCallState & {
    expiresAt: number;
  };
  const isSame = (['tool', 'tenantId', 'principal'] as const).every((name) => state[name] === expected[name]);
  return isSame && now < state.expiresAt ? state.taskId : undefined;
}

const signatureOf = (body: string, masterKey: Buffer): string =>
  createHmac('sha256', masterKey).update(`mcp request state ${body}`).digest('base64url');
