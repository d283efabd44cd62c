import { type Part, TaskState, type TaskStatus, textOf } from '@baton/a2a';
import { jsonPart, plainTextPart } from './agent-runtime.js';
import type { SignInOffer } from './access-tokens.js';
import type { SignInNeeded } from './sign-in-needed.js';

/** Why an agent asks its caller to sign in. */
export const needsSignIn = ({ message }: SignInNeeded): string => `The agent needs a sign-in: ${message}`;

/** Why it cannot ask, or does no longer. */
export const notSignedIn = (reason: string): string =>
  `${reason}. There was no sign-in in time, or this caller cannot sign in.`;

const KEY = 'sign_in';

/** What the caller of a task reads that waits for a sign-in: a text, and a data part for programs. */
export function signInParts(reason: string, { link, forMs }: SignInOffer): Part[] {
  const hours = Math.round(forMs / 3_600_000);
  const text =
    `${reason}. To sign in, open ${link} in your browser within ${hours} hours. The task then continues by itself. ` +
    'Do not open the link for another person.';
  return [plainTextPart(text), jsonPart({ [KEY]: { url: link, reason } })];
}

/** Why a task waits for a sign-in. Undefined: it does not, or not as agents of Baton do. */
export function signInReason(status: TaskStatus | undefined): string | undefined {
  if (status?.state !== TaskState.TASK_STATE_AUTH_REQUIRED) return undefined;
  const parts = status.message?.parts ?? [];
  for (const { content } of parts) {
    if (content?.$case !== 'data') continue;
    const { [KEY]: asked } = (content.value ?? {}) as { [KEY]?: { reason?: unknown } };
    if (asked)
      return typeof asked.reason === 'string' ? asked.reason.slice(0, 500) : textOf(parts).slice(0, 500);
  }
  return undefined;
}
