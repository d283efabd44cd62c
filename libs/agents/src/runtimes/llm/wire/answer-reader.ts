import type { JsonObject } from '@baton/a2a';

/**
 * Reads the events of one answer, and passes on those that the AI SDK understands. The SDK checks each event strictly: one
 * unknown member would fail the whole answer. So a reader leaves out unknown events and members.
 */
export interface AnswerReader {
  /** The parts of an event for the SDK: none for an unknown event. */
  read(event: JsonObject): JsonObject[];
  /**
   * How far the answer is. `finished`: the reason of its end is known, and only usage may follow. `over`: its last event
   * was read.
   */
  state: 'open' | 'finished' | 'over';
  /** Events that the provider has left out at the end, and that the SDK waits for. */
  close(): JsonObject[];
}
