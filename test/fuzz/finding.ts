/** What is fuzzed. */
export const PARTS = [
  'codec',
  'stream',
  'http',
  'raw',
  'grpc',
  'settings',
  'model',
  'tool',
  'remote',
] as const;
export type Part = (typeof PARTS)[number];

/** Something that must not be. */
export interface Finding {
  part: Part;
  /** Number of the case within its part and seed. */
  number: number;
  problem: string;
  /** What was sent. */
  input: string;
}

/** What came of the cases of a part. */
export interface Outcome {
  findings: Finding[];
  /** Cases that were sent: one that could not be sent proves nothing. */
  answered: number;
}
