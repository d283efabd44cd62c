import type {
  Descendant,
  LoggedStatus,
  ModelCallRecord,
  OpenCallRecord,
  RunEvent,
  RunRecord,
  StepRecord,
  ToolCallRecord,
  TriedReceiver,
} from '@baton/database';

/** The stored records of a task's life. */
export interface TraceMaterial {
  taskId: string;
  /** The oldest first. */
  runs: readonly RunRecord[];
  /** In their order. */
  statuses: readonly LoggedStatus[];
  modelCalls: readonly ModelCallRecord[];
  toolCalls: readonly ToolCallRecord[];
  openCalls: readonly OpenCallRecord[];
  steps: readonly StepRecord[];
  descendants: readonly Descendant[];
  /** By the ids of the runs. */
  histories: ReadonlyMap<string, readonly RunEvent[]>;
  receivers: readonly TriedReceiver[];
}
