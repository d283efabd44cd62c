import { Anchor } from '@mantine/core';
import { Link } from '@tanstack/react-router';
import type { TenantSchemas } from '@baton/contract';
import type { TaskState } from '../../a2a/task-states';
import styles from './recent-tasks.module.css';

type RecentTask = TenantSchemas['Schedule']['recent_tasks'][number];

/** How each state is marked. The colour only helps; the name of the link has the word. */
const MARKS: Readonly<Record<TaskState, string>> = {
  submitted: '○',
  working: '◔',
  'input-required': '?',
  'auth-required': '?',
  completed: '✓',
  failed: '✕',
  rejected: '✕',
  canceled: '–',
};

const TIME = new Intl.DateTimeFormat(undefined, { dateStyle: 'medium', timeStyle: 'short' });

/** The last tasks of a schedule as marks that lead to them, the oldest first. */
export function RecentTasks({ tasks }: { tasks: readonly RecentTask[] }) {
  return (
    <div className={styles.marks}>
      {tasks.toReversed().map(({ task_id: id, state, created_at: at }) => {
        const name = `${state}, ${TIME.format(new Date(at))}`;
        return (
          <Anchor
            key={id}
            component={Link}
            to={`/tasks/${id}`}
            className={styles.mark}
            data-bad={state === 'failed' || state === 'rejected' || undefined}
            aria-label={name}
            title={name}
            underline="never"
          >
            {MARKS[state]}
          </Anchor>
        );
      })}
    </div>
  );
}
