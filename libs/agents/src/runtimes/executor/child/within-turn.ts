/** Never resolves. Rejects when the signal aborts. */
export function rejection(signal: AbortSignal): Promise<never> {
  const rejected = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
  rejected.catch(() => undefined);
  return rejected;
}

/**
 * Calls `work`, but waits no longer than `ms`, and no longer than the turn lasts.
 *
 * Without `AbortSignal.any`: its weak references take longer to make and to collect than the rest of a short step.
 */
export async function withinTurn<T>(
  ms: number | undefined,
  stopping: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const controller = new AbortController();
  const { signal } = controller;
  const stop = (): void => controller.abort(stopping.reason);
  if (stopping.aborted) stop();
  else stopping.addEventListener('abort', stop, { once: true });
  const timer =
    ms === undefined
      ? undefined
      : setTimeout(() => {
          const error = new Error(`no answer within ${ms} ms`);
          error.name = 'StepTimeout';
          controller.abort(error);
        }, ms);
  const worked = work(signal);
  worked.catch(() => undefined);
  try {
    return await Promise.race([worked, rejection(signal)]);
  } finally {
    clearTimeout(timer);
    stopping.removeEventListener('abort', stop);
  }
}
