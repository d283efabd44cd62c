import { z } from 'zod';

const stored = z.object({
  reason: z.literal('code-changed'),
  problem: z.string(),
  code: z.string().nullish(),
  since: z.coerce.date(),
});

/** A run that waits for other code: the code of its agent has changed, and does not fit the journal. */
export interface ParkedRun {
  reason: 'code-changed';
  /** How the code differs, for the author of the agent. */
  problem: string;
  /** Hash of the code with which it was parked. Null: unknown. */
  code: string | null;
  since: Date;
}

/** SQL: whether a run is parked. It has the predicate of the index word by word. */
export const IS_PARKED = `state = 'suspended' AND parked_at IS NOT NULL`;

/** SQL: what `parkedRunOf` reads of the run `r`. NULL: the run is not parked. */
export const PARKED = `CASE WHEN r.state = 'suspended' AND r.parked_at IS NOT NULL THEN r.parked || jsonb_build_object('since', r.parked_at) END`;

/** Null: the run is not parked. */
export function parkedRunOf(row: unknown): ParkedRun | null {
  // What came with an import may be anything.
  const { data } = stored.safeParse(row);
  return data ? { ...data, code: data.code ?? null } : null;
}
