/** The table of the log, for statements about the whole table. Statements about its rows are in this folder. */
export const LOG_TABLE = 'task_events';
