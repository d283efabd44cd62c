import type { TenantSchemas } from '@baton/contract';
import { isTerminal } from './task-states';
import { durationText } from '../components/duration';

/** How long a task took: from its creation to its end, its waits included. Undefined: it is at work, or that is not known. */
export function lengthText({
  created_at: from,
  updated_at: to,
  state,
}: Pick<TenantSchemas['TaskSummary'], 'created_at' | 'updated_at' | 'state'>): string | undefined {
  if (from === undefined || to === undefined || !isTerminal(state)) return undefined;
  return durationText(Date.parse(to) - Date.parse(from));
}
