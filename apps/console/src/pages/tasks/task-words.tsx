import { Badge } from '@mantine/core';
import type { TenantSchemas } from '@baton/contract';
import { isTerminal, isWaiting, STATE_COLOURS, type TaskState } from '../../a2a/task-states';
import styles from './tasks.module.css';

export type ListedTask = TenantSchemas['TaskSummary'];
export type Task = TenantSchemas['Task'];

/**
 * Why a task has ended badly or waits: the last error in its agent's code, or what its status says. Undefined: it goes on, has
 * completed, or does not say it.
 */
export const statusReason = ({
  state,
  status_message: text,
  error_message: error,
}: ListedTask): string | undefined =>
  state !== 'completed' && (isTerminal(state) || isWaiting(state)) ? (error ?? text) : undefined;

/** The end of a UUID. Those of neighbours begin with the same time. Other ids, which callers have made, are whole. */
export const shortId = (id: string): string => (UUID.test(id) ? id.slice(-SHORT_ID) : id);

export const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

const SHORT_ID = 8;

/** An id in a list: its end alone where the list is narrow. The whole is copied, searched for and read aloud. */
export function ListedId({ id }: { id: string }) {
  return (
    <>
      <span className={`${styles.unseen} ${styles.idStart}`}>
        {id.slice(0, id.length - shortId(id).length)}
      </span>
      {shortId(id)}
    </>
  );
}

/** The word is the state; the colour only helps. */
export function StateBadge({ state }: { state?: TaskState | undefined }) {
  return (
    <Badge variant="outline" color={state ? STATE_COLOURS[state] : 'gray'} c="inherit" tt="none">
      {state ?? 'unknown'}
    </Badge>
  );
}

const UNITS = [
  [86_400, 'd'],
  [3_600, 'h'],
  [60, 'min'],
] as const;

/** A duration for people: `350 ms`, `12 s`, `3 min`, `2 d`. */
export function durationText(ms: number): string {
  if (ms < 1_000) return `${Math.max(0, Math.round(ms))} ms`;
  const seconds = ms / 1_000;
  const [size, unit] = UNITS.find(([each]) => seconds >= each) ?? [1, 's'];
  const value = seconds / size;
  return `${value < 10 ? value.toFixed(1).replace('.0', '') : Math.round(value)} ${unit}`;
}

/** How long a task took: from its creation to its end, its waits included. Undefined: it goes on, or that is not known. */
export function lengthText({ created_at: from, updated_at: to, state }: ListedTask): string | undefined {
  if (from === undefined || to === undefined || !isTerminal(state)) return undefined;
  return durationText(Date.parse(to) - Date.parse(from));
}
