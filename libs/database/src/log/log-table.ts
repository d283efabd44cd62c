/** For what concerns the table as a whole. Statements about its rows stand in this folder. */
export const LOG_TABLE = 'task_events';
