import type { NewTaskRow } from './new-task-row.js';

/** A run that was claimed as its task was created, and the content of that task. */
export interface NewRunJson {
  tenant_id: string;
  run_id: string;
  task_id: string;
  agent_id: string;
  owner: string | null;
  context_id: string;
  /** Bytes of what the task stores. */
  size: number;
  extensions: string[];
  traceparent: string | null;
  /** In ms since 1970. */
  accepted_at: number;
  message_bytes: number;
  message: object;
  metadata: object | null;
  /** The request without its message. */
  request: object | null;
}

/** The run of a new task as JSON (`NewRunJson`), from which `eagerRunFrom` makes what its worker needs. */
export function newRunJson(written: NewTaskRow): string {
  const { input, bytes, message, details, metadata, statusAt } = written;
  const { task } = input;
  const run: Omit<NewRunJson, 'message' | 'metadata' | 'request'> = {
    tenant_id: input.tenantId,
    run_id: input.runId,
    task_id: task.id,
    agent_id: input.agentId,
    owner: input.owner ?? null,
    context_id: task.contextId,
    size: bytes - (input.copiedBytes ?? 0),
    extensions: [...input.extensions],
    traceparent: input.traceparent ?? null,
    accepted_at: statusAt.getTime(),
    message_bytes: Buffer.byteLength(message),
  };
  // These are JSON already.
  const content = `"message":${message},"metadata":${metadata ?? null},"request":${details ?? null}`;
  return `${JSON.stringify(run).slice(0, -1)},${content}}`;
}
