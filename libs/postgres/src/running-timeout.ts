/** A pause of the machine counts for one tick: more ticks would wake the process more often. */
const TICKS = 10;

/**
 * `setTimeout` for a time limit, without the time in which this process stood still. While the machine is paused or other programs have all
 * its cores, what the caller waits for has no time either. A pause counts for a tenth of `ms` at most.
 * @returns for `clearInterval`
 */
export function runningTimeout(callback: () => void, ms: number): NodeJS.Timeout {
  let left = TICKS;
  // An interval that is late fires once, however late it is.
  const timer = setInterval(() => {
    left -= 1;
    if (left > 0) return;
    clearInterval(timer);
    callback();
  }, ms / TICKS);
  return timer;
}
