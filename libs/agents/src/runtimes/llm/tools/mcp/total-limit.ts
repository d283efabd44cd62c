import { silence } from './mcp-failure.js';

/** Ends a call in which its server reports progress for ever: each report restarts `timeout`. */
export class TotalLimit {
  /** Aborts at the limit, or with the turn. The server gets a cancel. */
  readonly signal: AbortSignal;
  private readonly late: AbortSignal;

  constructor(
    private readonly ms: number,
    turn: AbortSignal,
  ) {
    this.late = AbortSignal.timeout(ms);
    this.signal = AbortSignal.any([turn, this.late]);
  }

  /** The error of the call, or that the limit has ended it. */
  explained(error: unknown): unknown {
    return this.late.aborted ? silence('totalTimeout', this.ms) : error;
  }
}
