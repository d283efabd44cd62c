import type { ApprovalAnswer } from '../../../approvals.js';

/** A task at a tool server (MCP extension `io.modelcontextprotocol/tasks`). */
export interface RemoteTask {
  taskId: string;
  /** ISO 8601, by the clock of the worker that received it. */
  receivedAt: string;
  /** How long the server keeps it, in ms. Null: it does not say. */
  ttlMs: number | null;
  pollIntervalMs: number;
}

/** A question of a tool server to a person: with a form, or with an address that the person opens. */
export type ToolQuestion = { message: string } & (
  | { requestedSchema: Record<string, unknown> }
  | { url: string }
);

/** The questions of an answer to `tools/call`, by the keys of the server, and what the next call must carry. */
export interface AskedByTool {
  questions: Record<string, ToolQuestion>;
  requestState?: string;
}

/**
 * A tool call that has not ended with its answer: its server works on a task, or asks a person first. It is in the journal before
 * the next request, so any worker continues with it.
 */
export interface RemoteCall {
  /** Name of the server in the settings, and its address: an id of one server is nothing at another. */
  server: string;
  url: string;
  /** Name of the tool at the server. */
  tool: string;
  task?: RemoteTask;
  /** Unset: nothing is asked, or a task asks. */
  asked?: AskedByTool;
  /** How often the server has asked. */
  rounds: number;
  /** The answer of a person that was used last. */
  answered?: number;
  /** Keys of the questions of a task that were answered. */
  answeredKeys?: string[];
  /** ISO 8601: since then the server cannot be reached. */
  unreachableSince?: string;
}

/** An answer of a person that was not used yet. */
export const newAnswer = (
  kept: RemoteCall | undefined,
  answer: ApprovalAnswer | undefined,
): ApprovalAnswer | undefined => (answer && answer.number > (kept?.answered ?? 0) ? answer : undefined);

/** Whether the call is sent next. A task is asked for its state, and a question waits for its answer. */
export const isSentNext = (kept: RemoteCall | undefined, answer: ApprovalAnswer | undefined): boolean =>
  kept === undefined || (kept.task === undefined && newAnswer(kept, answer) !== undefined);
