/** Maximum number of tries of a notice for webhooks that do not answer. The pauses double, and sum up to more than a day. */
const MAX_TRIES = 12;

/** SQL of when a notice is due again after one more try. NULL: never. @param tries SQL of the number of tries before */
export const nextTryAt = (tries: string): string =>
  `CASE WHEN ${tries} + 1 < ${MAX_TRIES} THEN clock_timestamp() + interval '1 minute' * power(2, ${tries}) END`;
