import { TokensExceeded } from './tokens-exceeded.js';

/** What a person is asked where a spending cap has no room: to let the task, with all of its tree, spend more. */
export interface CapQuestion {
  capId: string;
  /** Whose spending the cap bounds: an id or a key. */
  subject: string;
  /** Default amount, in millionths, unless the answer has one. */
  micros: number;
  currency: string;
  /** The cap, and what is used of it. */
  reason: string;
}

/** A spending cap has no room, and a person may let the task continue. A runtime that cannot ask fails with the message. */
export class CapReached extends TokensExceeded {
  constructor(readonly question: CapQuestion) {
    super(question.reason);
  }
}
