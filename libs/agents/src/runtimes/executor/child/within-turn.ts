/** Never resolves. Rejects when the signal aborts. */
export function rejection(signal: AbortSignal): Promise<never> {
  const rejected = new Promise<never>((_, reject) => {
    signal.addEventListener('abort', () => reject(signal.reason as Error), { once: true });
  });
  rejected.catch(() => undefined);
  return rejected;
}

/** Calls `work`, but waits no longer than `ms`, and no longer than the turn lasts. */
export async function withinTurn<T>(
  ms: number | undefined,
  stopping: AbortSignal,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T> {
  const late = new AbortController();
  const timer =
    ms === undefined
      ? undefined
      : setTimeout(() => {
          const error = new Error(`no answer within ${ms} ms`);
          error.name = 'StepTimeout';
          late.abort(error);
        }, ms);
  const signal = AbortSignal.any([stopping, late.signal]);
  const worked = work(signal);
  worked.catch(() => undefined);
  try {
    return await Promise.race([worked, rejection(signal)]);
  } finally {
    clearTimeout(timer);
  }
}
