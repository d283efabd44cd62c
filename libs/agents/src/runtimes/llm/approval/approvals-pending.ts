import type { ApprovalRequest } from '../../../approvals.js';

/** Thrown by a tool whose child task asks a person to approve these calls. */
export class ApprovalsPending extends Error {
  override readonly name = 'ApprovalsPending';

  constructor(readonly requests: readonly ApprovalRequest[]) {
    super('A task that the call waits for asks a person for approval');
  }
}
