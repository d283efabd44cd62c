/**
 * Aborts with a TimeoutError after `ms`. Unlike `AbortSignal.timeout` it can't be collected before, which Node 20 does
 * when only `AbortSignal.any` refers to it.
 */
export function timeoutSignal(ms: number): AbortSignal {
  const controller = new AbortController();
  const error = new DOMException('The operation took too long', 'TimeoutError');
  setTimeout(() => controller.abort(error), ms).unref();
  return controller.signal;
}
