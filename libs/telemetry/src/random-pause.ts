/** A pause before a retry: random between half of it and all of it, so that concurrent failures do not retry together. */
export const retryPause = (ms: number): number => ms * (0.5 + Math.random() / 2);

/** Maximum of `spreadPause`, as a factor. */
export const MAX_SPREAD = 1.25;

/** A pause between repetitions: 75 to 125 % of it, so that processes do not act at the same moments. */
export const spreadPause = (ms: number): number => ms * (MAX_SPREAD - Math.random() / 2);
