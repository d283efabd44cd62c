import { Role, type Message } from '@baton/a2a';
import type { Turn } from './runtime.js';

/** What was said before this turn's message: empty in a task's first turn. */
export function historyBefore({ task, message }: Turn): Message[] {
  // The last one, because some callers use a messageId twice in a task.
  const index = task.history.findLastIndex(
    ({ messageId, role }) => messageId === message.messageId && role === Role.ROLE_USER,
  );
  return index < 0 ? [] : task.history.slice(0, index);
}

/**
 * Which turn of its task this is, from 1. It comes from the stored task alone, so that any worker and any
 * attempt counts the same.
 */
export function turnNumber(turn: Turn): number {
  return 1 + historyBefore(turn).filter(({ role }) => role === Role.ROLE_USER).length;
}
