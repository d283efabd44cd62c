/** For events that callers can cause without limit: six lines a minute show an attack. */
const LINE_EVERY_MS = 10_000;

/** Writes a line about an event that happens again and again: at once, and then at most one in ten seconds. */
export class PacedLog {
  private events = 0;
  private writtenAt = -Infinity;

  /** @param write writes the line. `events` is how many there were since the line before, this one included */
  note(write: (events: number) => void): void {
    this.events += 1;
    if (performance.now() - this.writtenAt < LINE_EVERY_MS) return;
    write(this.events);
    this.writtenAt = performance.now();
    this.events = 0;
  }
}
