import type { ErrorKind } from './errors.js';
import { shortened } from './shortened.js';

/** One wrong field of a request, as `google.rpc.BadRequest` names it. */
export interface FieldViolation {
  /** Path of the field, e.g. `message.parts[0]`. */
  field: string;
  description: string;
}

/** The parts of an error besides its message. */
export interface ErrorDetail {
  metadata?: Record<string, string>;
  violations?: FieldViolation[];
  /** When the same request may be sent again, in whole seconds from now. */
  retryAfterSeconds?: number;
}

/** The tombstone of a task that is past its retention. */
export interface DeletedTask {
  endedAt: Date;
  deletedAt: Date;
  /** How long tasks stayed after their end when this one was deleted. 0: it was deleted on request. */
  retentionDays: number;
}

/** An error that callers see. Its message is for the caller: never a stack, SQL or a secret. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError';

  constructor(
    readonly kind: ErrorKind,
    message: string,
    readonly detail: ErrorDetail = {},
  ) {
    super(message);
  }

  /** -32602 that names the wrong field and what to do about it. */
  static invalidParams(field: string, description: string): ProtocolError {
    return new ProtocolError('invalid-params', `${field}: ${description}`, {
      violations: [{ field, description }],
    });
  }

  /**
   * -32001. The same for an unknown id and for one of another tenant.
   * @param deleted set when the tenant had the task, and its retention is over or it was deleted on request
   */
  static taskNotFound(taskId: string, deleted?: DeletedTask): ProtocolError {
    if (!deleted) {
      return new ProtocolError('task-not-found', `Task not found: ${taskId}`, { metadata: { taskId } });
    }
    const [endedAt, deletedAt] = [deleted.endedAt.toISOString(), deleted.deletedAt.toISOString()];
    const days = deleted.retentionDays.toString();
    const fate =
      deleted.retentionDays === 0
        ? `ended at ${endedAt} and was deleted at ${deletedAt}`
        : `ended at ${endedAt} and was deleted after ${days} ${days === '1' ? 'day' : 'days'} of retention`;
    return new ProtocolError('task-not-found', `Task not found: ${taskId} ${fate}`, {
      metadata: { taskId, endedAt, deletedAt, retentionDays: days },
    });
  }

  /**
   * -32029 with HTTP 429: the request would go over a limit of the tenant, and nothing of it was done.
   * @param limit the limit's name, e.g. `openStreams`
   * @param max what it allows
   * @param remedy what the caller can do, as the rest of a sentence: `close one, or ask the operator for more`
   */
  static limitExceeded(limit: string, max: number, retryAfterSeconds: number, remedy: string): ProtocolError {
    return new ProtocolError(
      'limit-exceeded',
      `the limit ${limit} of this tenant is reached, which is ${max}: ${remedy}`,
      {
        metadata: { limit, max: String(max), retryAfterSeconds: String(retryAfterSeconds) },
        retryAfterSeconds,
      },
    );
  }

  /** `unavailable`: the same request may succeed later. */
  static unavailable(
    message: string,
    retryAfterSeconds: number,
    metadata: Record<string, string> = {},
  ): ProtocolError {
    return new ProtocolError('unavailable', message, {
      metadata: { ...metadata, retryAfterSeconds: String(retryAfterSeconds) },
      retryAfterSeconds,
    });
  }

  /** -32601. */
  static methodNotFound(method: string): ProtocolError {
    const shown = shortened(method, 128);
    return new ProtocolError('method-not-found', `Method not found: ${shown}`, {
      metadata: { method: shown },
    });
  }
}
