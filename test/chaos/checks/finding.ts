/** What a check may find, one column of the report each. */
export const DEFECTS = {
  lost: 'events or messages that are missing',
  doubled: 'events or messages that came twice, and messages that became two tasks',
  reordered: 'events that came out of order',
  wrong: 'content that is not what was sent, or not what the log says',
  stuck: 'tasks that did not end',
  afterTerminal: 'events after the end, or ways out of it',
  zombie: 'writes of an attempt that had been replaced',
  mistimed: 'due times of schedules that are not exactly one task or one record',
  crossTenant: 'frames or answers with what is another tenant’s',
  unexpected: 'answers that no fault of the moment explains, and processes that ended by themselves',
} as const;

export type Defect = keyof typeof DEFECTS;

export interface Finding {
  defect: Defect;
  /** Name or id of the task. */
  task: string;
  detail: string;
}
