import { HEADER_BYTES } from './protocol.js';

/** Texts that wait to go together, in characters. */
const MAX_UNSENT = 256 * 1024;

/** Texts that go to the other process together, as frames in one piece of bytes. */
export class FrameBatch {
  private texts: string[] = [];
  private chars = 0;

  add(text: string): void {
    this.texts.push(text);
    this.chars += text.length;
  }

  get isEmpty(): boolean {
    return this.texts.length === 0;
  }

  /** The texts are so large that they should go now. */
  get isFull(): boolean {
    return this.chars >= MAX_UNSENT;
  }

  /** Returns the frames of all texts, in their order, and removes the texts. */
  take(): Buffer {
    const { texts } = this;
    this.texts = [];
    this.chars = 0;
    const lengths = texts.map((text) => Buffer.byteLength(text));
    const frames = Buffer.allocUnsafe(lengths.reduce((sum, length) => sum + HEADER_BYTES + length, 0));
    let end = 0;
    for (const [i, text] of texts.entries()) {
      end = frames.writeUInt32BE(lengths[i] ?? 0, end);
      end += frames.write(text, end);
    }
    return frames;
  }
}
