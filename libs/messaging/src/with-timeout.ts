/**
 * Waits for `work`, but not longer than `ms`. An answer that came while this process was busy with other work is read first.
 * Rejects as `work` does, or with `reason` when the time is up (the work itself is not stopped).
 */
export async function withTimeout<T>(ms: number, work: Promise<T>, reason: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined;
  const late = new Promise<never>((_resolve, reject) => {
    // Node.js runs timers before it reads sockets, and immediates after.
    timer = setTimeout(() => setImmediate(() => reject(new Error(reason))), ms);
  });
  try {
    return await Promise.race([work, late]);
  } finally {
    clearTimeout(timer);
  }
}
