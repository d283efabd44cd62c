import type { IncomingMessage } from 'node:http';
import { CallTurns } from './call-turns.js';
import { Places } from './places.js';

/** Bodies in small chunks that are read at the same time: of one holder, and of all. */
const [MAX_OF_HOLDER, MAX] = [8, 32];

/**
 * Bodies in chunks of a few bytes. Each chunk takes about a microsecond of the event loop and 200 bytes of memory, and a read of a connection
 * may bring eleven thousand. So few such bodies are read at a time, and they take turns of the event loop.
 */
export class FineBodies {
  private readonly turns = new CallTurns<IncomingMessage>();
  private readonly places = new Places(MAX_OF_HOLDER, MAX);

  /** @returns what ends the counting of a body of this holder; undefined if there are too many */
  begin(holder: string): (() => void) | undefined {
    return this.places.take(holder);
  }

  /** Reads on when it is the turn of this request. */
  rest(request: IncomingMessage): void {
    request.pause();
    this.turns.take(request, () => request.resume());
  }
}
