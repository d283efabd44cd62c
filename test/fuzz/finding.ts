/** Something that must not be. */
export interface Finding {
  part: 'codec' | 'http' | 'raw';
  /** Number of the case within its part and seed. */
  number: number;
  problem: string;
  /** What was sent. */
  input: string;
}
