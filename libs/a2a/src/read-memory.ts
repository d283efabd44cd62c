/** Memory of this process for what a call reads of large tasks; the call has it until its answer has left. */
export interface ReadMemory {
  /**
   * Take this many bytes of JSON. May wait.
   * @returns whether they were granted; if not, the call answers with what it has
   * @throws ProtocolError `unavailable` where the call has nothing to answer with
   */
  take(bytes: number): Promise<boolean>;
  /** Gives back bytes that were taken last and are not needed. */
  giveBack(bytes: number): void;
  /** Resolves when this many bytes of JSON may be parsed. The caller must begin at once. Large work of one caller leaves time to others. */
  turn(bytes: number): Promise<void>;
}
