/** SQL of the end of a lease. It takes the clock and not the start of the transaction, which may have waited for a lock. */
export const leaseExpiry = (milliseconds: string): string =>
  `clock_timestamp() + ${milliseconds} * interval '1 millisecond'`;
