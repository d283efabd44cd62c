import { AppendRefused } from '../core/append-refused.js';
import { TurnFailure } from '../core/turn-failure.js';

/** The result of `work`. Rejects when `cutOff` aborts; `late` then gets what comes after that. */
export function unlessCutOff<T>(
  work: Promise<T>,
  cutOff: AbortSignal,
  late: (result: T) => void,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const giveUp = (): void => {
      reject(cutOff.reason as Error);
      work.then(late, () => undefined);
    };
    if (cutOff.aborted) giveUp();
    else cutOff.addEventListener('abort', giveUp, { once: true });
    work.then(resolve, reject).finally(() => cutOff.removeEventListener('abort', giveUp));
  });
}

/**
 * Aborts with either signal of a run. `AbortSignal.any` does so with weak references, which take several times as long to make;
 * these signals last no longer than the run.
 */
export function eitherOf(...signals: AbortSignal[]): AbortSignal {
  const either = new AbortController();
  for (const signal of signals) {
    const abort = (): void => either.abort(signal.reason);
    if (signal.aborted) abort();
    else signal.addEventListener('abort', abort, { once: true });
  }
  return either.signal;
}

/** Waits for one output of a runtime after the other. Rejects as soon as the run is stopped. */
export function stoppedBy(signal: AbortSignal): <T>(next: Promise<T>) => Promise<T> {
  let stop: (reason: Error) => void = () => undefined;
  const reasonOfStop = (): Error =>
    signal.reason instanceof TurnFailure ? signal.reason : new AppendRefused('the run was stopped');
  // One listener for all outputs: one for each costs more than the output.
  signal.addEventListener('abort', () => stop(reasonOfStop()), { once: true });
  return (next) =>
    new Promise((resolve, reject) => {
      stop = reject;
      next.then(resolve, reject);
      if (signal.aborted) reject(reasonOfStop());
    });
}
