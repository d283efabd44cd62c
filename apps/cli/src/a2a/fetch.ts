import { OperatorError } from '../operator-error.js';
import type { SequenceTap } from './sequence-tap.js';

/** The server can't be reached, or not at the moment. */
export class UnreachableError extends OperatorError {}

/** The server has answered that it will not. */
export class RefusedError extends OperatorError {
  constructor(
    origin: string,
    /** Of HTTP. */
    readonly status: number,
    /** What the server says, without a full stop. */
    readonly reason: string,
  ) {
    super(`${origin} answers ${status}: ${reason}.`);
  }
}

/** Answers of something in front of the server while it starts again. */
const AWAY = new Set([502, 503, 504]);

/**
 * A `fetch` that sends the token and whose errors are sentences for the operator.
 * @param tap makes a tap for each event stream; unset where there are none
 */
export function createFetch(token: string, tap?: () => SequenceTap): typeof fetch {
  return async (input, init) => {
    const headers = new Headers(init?.headers);
    headers.set('authorization', `Bearer ${token}`);
    const { origin } = new URL(input instanceof Request ? input.url : input);
    const response = await fetch(input, { ...init, headers }).catch((error: unknown) => {
      throw unreachable(origin, error);
    });
    if (!response.ok) throw await refusal(origin, response);
    return tap && isStream(response) ? tapped(response, tap()) : response;
  };
}

/** Whether the connection broke, so that the same call may succeed in a moment. */
export const isLost = (error: unknown): boolean =>
  // That is all Node says of a body that breaks off.
  error instanceof UnreachableError || (error as { message?: unknown } | null)?.message === 'terminated';

const isStream = ({ headers }: Response): boolean =>
  headers.get('content-type')?.startsWith('text/event-stream') ?? false;

function tapped(response: Response, tap: SequenceTap): Response {
  const decoder = new TextDecoder();
  const body = response.body?.pipeThrough(
    new TransformStream<Uint8Array, Uint8Array>({
      transform(chunk, controller) {
        tap.feed(decoder.decode(chunk, { stream: true }));
        controller.enqueue(chunk);
      },
    }),
  );
  return new Response(body, response);
}

function unreachable(origin: string, error: unknown): UnreachableError {
  // Node says only "fetch failed"; why it did is in the cause.
  const code = (error as { cause?: { code?: unknown } }).cause?.code;
  if (code === 'UND_ERR_HEADERS_TIMEOUT') {
    return new UnreachableError(`${origin} did not answer in time: send what takes long with --stream.`);
  }
  const reason = typeof code === 'string' ? ` (${code})` : '';
  return new UnreachableError(
    `${origin} does not answer${reason}: check --url, or start Baton with \`npm start\`.`,
    { cause: error },
  );
}

async function refusal(origin: string, response: Response): Promise<OperatorError> {
  const { status } = response;
  if (AWAY.has(status))
    return new UnreachableError(`${origin} is not ready (${status}): try again in a moment.`);
  if (status === 401) {
    return new OperatorError(
      `${origin} refuses the token: give a valid one with --token, from npx baton tokens create.`,
    );
  }
  const reason = messageOf(await response.text().catch(() => '')) ?? 'no reason is given';
  return new RefusedError(origin, status, reason);
}

/** Of a JSON-RPC error, or of any error that is an object with a message. */
function messageOf(body: string): string | undefined {
  try {
    const { error, message = error?.message } = JSON.parse(body) as {
      message?: unknown;
      error?: { message?: unknown };
    };
    return typeof message === 'string' ? message.replace(/\.$/, '') : undefined;
  } catch {
    return undefined;
  }
}
