/** The log refused the batch: the task has ended, or another attempt owns it. The run must stop. */
export class AppendRefused extends Error {}
