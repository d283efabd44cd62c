import type { TaskSignal } from './messaging.js';
import { decodeSignal } from './signal-text.js';

/** Decodes signals once for all listeners of a channel, who get the same text one after another. */
export class SignalDecoder {
  private text: string | undefined;
  private signal: TaskSignal = { lastSequence: 0, events: [] };

  /** The listeners share the result, so they must not change it. */
  decode(text: string): TaskSignal {
    if (text === this.text) return this.signal;
    this.text = undefined;
    this.signal = decodeSignal(text);
    this.text = text;
    return this.signal;
  }
}
