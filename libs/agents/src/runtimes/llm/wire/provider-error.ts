import type { Complaint } from './provider-complaint.js';

/** A provider has answered with an error. Its message is for logs; `explain` makes the one for callers. */
export class ProviderError extends Error {
  override readonly name = 'ProviderError';

  constructor(readonly complaint: Complaint) {
    super(`${complaint.status} ${complaint.message ?? ''}`);
  }
}
