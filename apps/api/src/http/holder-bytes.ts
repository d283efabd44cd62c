/** Bytes that holders take of a memory. */
export class HolderBytes {
  private sum = 0;
  private readonly byHolder = new Map<string, number>();

  /** Bytes of all holders. */
  get total(): number {
    return this.sum;
  }

  bytesOf(holder: string): number {
    return this.byHolder.get(holder) ?? 0;
  }

  /** @param bytes that the holder takes. Negative: it gives them back */
  add(holder: string, bytes: number): void {
    this.sum += bytes;
    const left = this.bytesOf(holder) + bytes;
    if (left > 0) this.byHolder.set(holder, left);
    else this.byHolder.delete(holder);
  }
}
