import type { IncomingMessage } from 'node:http';
import { CallTurns } from './call-turns.js';

/** Bodies in small chunks that are read at the same time: of one holder, and of all. */
const [MAX_OF_HOLDER, MAX] = [8, 32];

/**
 * Bodies in chunks of a few bytes. Each chunk takes about a microsecond of the event loop and 200 bytes of memory, and a read of a connection
 * may bring eleven thousand. So few such bodies are read at a time, and they take turns of the event loop.
 */
export class FineBodies {
  private readonly turns = new CallTurns<IncomingMessage>();
  private readonly byHolder = new Map<string, number>();
  private all = 0;

  /** Counts a body of this holder. False: there are too many. Otherwise `end` must follow. */
  begin(holder: string): boolean {
    const ofHolder = this.byHolder.get(holder) ?? 0;
    if (ofHolder >= MAX_OF_HOLDER || this.all >= MAX) return false;
    this.byHolder.set(holder, ofHolder + 1);
    this.all += 1;
    return true;
  }

  end(holder: string): void {
    const left = (this.byHolder.get(holder) ?? 0) - 1;
    if (left > 0) this.byHolder.set(holder, left);
    else this.byHolder.delete(holder);
    this.all -= 1;
  }

  /** Reads on when it is the turn of this request. */
  rest(request: IncomingMessage): void {
    request.pause();
    this.turns.take(request, () => request.resume());
  }
}
