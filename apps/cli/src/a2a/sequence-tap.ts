/** Longer than any `id:` line; of the other lines only the beginning matters. */
const LINE_LENGTH = 40;

/**
 * Reads the `id:` lines of an event stream beside the SDK's client, which does not hand them on. Fed with the
 * text of the stream, it knows the sequence of every event that the client yields, in order.
 */
export class SequenceTap {
  private readonly sequences: (number | undefined)[] = [];
  private line = '';
  private sequence: number | undefined;
  private hasData = false;

  /** @param text the next piece of the stream, cut anywhere */
  feed(text: string): void {
    const [rest = '', ...lines] = text.split('\n').reverse();
    for (const line of lines.reverse()) {
      this.extend(line);
      this.endLine();
    }
    this.extend(rest);
  }

  /** The sequence of the next event; undefined if its frame carried none. */
  next(): number | undefined {
    return this.sequences.shift();
  }

  private extend(text: string): void {
    this.line = (this.line + text.slice(0, LINE_LENGTH)).slice(0, LINE_LENGTH);
  }

  private endLine(): void {
    const line = this.line.trimEnd();
    this.line = '';
    if (line === '') this.endFrame();
    else if (line.startsWith('data:')) this.hasData = true;
    else if (/^id: ?\d+$/.test(line)) this.sequence = Number(line.slice(3));
  }

  /** A frame without data (a heartbeat) is no event. */
  private endFrame(): void {
    if (this.hasData) this.sequences.push(this.sequence);
    this.hasData = false;
    this.sequence = undefined;
  }
}
