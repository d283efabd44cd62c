import type { WrongField } from '@baton/contract';

/** Why a call failed. `message` is for people: the fault, and the remedy. */
export class ApiError extends Error {
  constructor(
    message: string,
    /** The HTTP status; 0 = there was no answer. */
    readonly status: number,
    /** The kind of the error, such as `INVALID_PARAMS`. */
    readonly kind: string,
    readonly fields: readonly WrongField[] = [],
    /** After how many seconds to send the request again. Unset: unknown. */
    readonly retryAfter?: number,
    /** With this id, the operator finds the request in the log. */
    readonly requestId?: string,
  ) {
    super(message);
    this.name = 'ApiError';
  }

  /** The server does not answer, or the network is away. */
  static unreachable(): ApiError {
    return new ApiError(
      'The server does not answer. Check your connection, then try again.',
      0,
      'UNREACHABLE',
    );
  }

  /** Whether the same request may succeed later. */
  get isTransient(): boolean {
    return this.status === 0 || this.status === 429 || this.status >= 500;
  }
}

interface ErrorBody {
  error?: { message?: unknown; status?: unknown; fields?: WrongField[] };
  reason?: unknown;
}

/** The error in an answer without success. */
export async function errorOf(response: Response): Promise<ApiError> {
  const body = (await response
    .clone()
    .json()
    .catch(() => ({}))) as ErrorBody;
  const message = [body.error?.message, body.reason].find((text) => typeof text === 'string');
  const retryAfter = Number(response.headers.get('retry-after') ?? Number.NaN);
  return new ApiError(
    message ?? `The server answers with ${response.status}. Try again, or ask the operator.`,
    response.status,
    typeof body.error?.status === 'string' ? body.error.status : String(response.status),
    body.error?.fields ?? [],
    Number.isNaN(retryAfter) ? undefined : retryAfter,
    response.headers.get('x-request-id') ?? undefined,
  );
}
