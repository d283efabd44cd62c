import { untilStatementEnded } from './postgres-client.js';

/**
 * Work of which at most one is under way, in this process and at Postgres: a call during the work gets the result of that work.
 * Work whose statement got no answer in time lasts until Postgres no longer executes the statement.
 */
export class SingleFlight<T> {
  private inFlight: Promise<T> | undefined;

  /** Rejects as `work` does. */
  run(work: () => Promise<T>): Promise<T> {
    this.inFlight ??= this.begin(work);
    return this.inFlight;
  }

  private async begin(work: () => Promise<T>): Promise<T> {
    try {
      return await work();
    } catch (error) {
      await untilStatementEnded(error);
      throw error;
    } finally {
      this.inFlight = undefined;
    }
  }
}
