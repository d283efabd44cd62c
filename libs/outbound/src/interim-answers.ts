import { OutboundRefused } from './outbound-refused.js';

/** Interim answers (1xx) that a server may send before its answer. */
const MAX_INTERIM_ANSWERS = 16;

/** The part of a handler of undici's `fetch` that gets the headers of each answer, interim ones too. */
interface HeadersHandler {
  onHeaders(status: number, ...rest: unknown[]): boolean;
}

/**
 * The handler of a request, which ends with OutboundRefused when more than `MAX_INTERIM_ANSWERS` interim answers have come. undici drops
 * them, however many there are, and each of them starts the time limit of the headers anew: a server could answer so without end.
 *
 * @param handler of `fetch`
 * @param host the host in the error
 */
export function limitInterimAnswers<Handler extends object>(handler: Handler, host: string): Handler {
  const before = handler as unknown as HeadersHandler;
  let left = MAX_INTERIM_ANSWERS;
  // `fetch` keeps its state in the handler, so it must be the receiver of its other methods as well.
  const limited = Object.create(handler) as Handler & HeadersHandler;
  limited.onHeaders = (status, ...rest) => {
    if (status < 200 && left-- === 0)
      throw new OutboundRefused(`"${host}" sent more than ${MAX_INTERIM_ANSWERS} interim answers (1xx)`);
    return before.onHeaders.call(limited, status, ...rest);
  };
  return limited;
}
