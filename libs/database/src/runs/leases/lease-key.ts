/** A lease to keep. */
export interface LeaseKey {
  tenantId: string;
  runId: string;
  /** 0: a claim in progress, whose attempt is not known yet. */
  attempt: number;
}

/** A lease that another worker has, or whose run is over. */
export type LostLease = Pick<LeaseKey, 'runId' | 'attempt'>;

/** A text that names one lease. */
export const nameOf = ({ runId, attempt }: LostLease): string => `${runId}/${attempt}`;
