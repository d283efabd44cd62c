/** A log as of one of its events. */
export interface LogSnapshot {
  tenantId: string;
  taskId: string;
  head: number;
}
