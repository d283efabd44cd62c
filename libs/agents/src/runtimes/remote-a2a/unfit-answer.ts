/** An HTTP answer that is not one of A2A: an error of a proxy, a web page, a stream of another kind. */
export class UnfitAnswer extends Error {
  override readonly name = 'UnfitAnswer';

  constructor(
    readonly status: number,
    /** Without parameters, in lower case; empty = the answer has none. */
    readonly mediaType: string,
    /** The path that was called. */
    readonly path: string,
    /** The answer, shortened. It may quote the request and its secrets. */
    readonly excerpt: string,
    /** Whether a stream of events was asked for. */
    readonly wantedStream: boolean,
  ) {
    super(`HTTP ${status} ${mediaType} of ${path}: ${excerpt}`);
  }
}
