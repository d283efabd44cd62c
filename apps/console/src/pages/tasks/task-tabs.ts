/** The tabs of a task, in their order. */
export const TABS = { trace: 'Trace', output: 'Output', log: 'Log', raw: 'Raw' } as const;
export type TaskTab = keyof typeof TABS;

/** `first-reads.ts` reads it as well. */
const KEY = 'baton-task-tab';

/** The tab of an address. Undefined: it names none. */
export const readTab = (value: unknown): TaskTab | undefined =>
  typeof value === 'string' && Object.hasOwn(TABS, value) ? (value as TaskTab) : undefined;

/** Keeps the tab for the next task that is opened. A browser may refuse to store anything. */
export function keepTab(tab: TaskTab): void {
  try {
    localStorage.setItem(KEY, tab);
  } catch {
    // The next task opens with its trace.
  }
}

/** The tab that was chosen last, also for another task. */
export function keptTab(): TaskTab {
  try {
    return readTab(localStorage.getItem(KEY)) ?? 'trace';
  } catch {
    return 'trace';
  }
}
