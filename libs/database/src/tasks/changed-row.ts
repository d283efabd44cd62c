import type { TaskState } from '@baton/a2a';

/** What a guarded change of a task answers: the state that it found, and the sequence of its event; null = it was refused. */
export interface ChangedRow {
  state: TaskState;
  sequence: number | null;
}
