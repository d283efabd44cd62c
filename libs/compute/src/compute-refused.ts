import { ProtocolError } from '@baton/a2a';

/** The work was refused or terminated. The message is a clause about its subject. */
export class ComputeRefused extends Error {
  override readonly name = 'ComputeRefused';

  /** @param limit as metrics name it */
  constructor(
    readonly limit: 'computeTime' | 'computeMemory' | 'computeWaiting',
    message: string,
  ) {
    super(message);
  }

  /** The error of a request whose work would wait too long. */
  asLimit(): ProtocolError {
    return ProtocolError.limitExceeded(this.limit, MAX_WAITING, 1, 'send fewer of them at once');
  }
}

/** Maximum number of waiting pieces of work of one tenant. */
export const MAX_WAITING = 256;
