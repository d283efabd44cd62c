/**
 * Aborts with a TimeoutError after `ms`. Node 20 may collect an `AbortSignal.timeout` as garbage too early if only
 * `AbortSignal.any` refers to it. This signal stays alive.
 */
export function timeoutSignal(ms: number): AbortSignal {
  const controller = new AbortController();
  const error = new DOMException('The operation took too long', 'TimeoutError');
  setTimeout(() => controller.abort(error), ms).unref();
  return controller.signal;
}
