import type { TenantSchemas } from '@baton/contract';
import { isTerminal, isWaiting, STATE_COLOURS, type TaskState } from '../../a2a/task-states';
import { StateWord } from '../../components/state-word';
import { shortId } from '../../components/uuid';
import styles from './tasks.module.css';

export type ListedTask = TenantSchemas['TaskSummary'];
export type Task = TenantSchemas['Task'];

/**
 * Why a task has ended badly or waits: how its steps do not fit the code, the last error in its agent's code, or the text of its status.
 * Undefined: it has not ended, has completed, or does not say it.
 */
export const statusReason = ({
  state,
  status_message: text,
  error_message: error,
  parked,
}: ListedTask): string | undefined =>
  parked?.problem ??
  (state !== 'completed' && (isTerminal(state) || isWaiting(state)) ? (error ?? text) : undefined);

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

/** The word is the state; the colour only helps. A parked task is `working` for its callers. */
export function StateBadge({
  state,
  parked,
}: {
  state?: TaskState | undefined;
  parked?: ListedTask['parked'] | undefined;
}) {
  if (parked) return <StateWord colour="orange" word="parked" />;
  return <StateWord colour={state ? STATE_COLOURS[state] : 'gray'} word={state ?? 'unknown'} />;
}
