import type { z } from 'zod';

/** Entries of a journal that was imported with its tenant may be anything. Entries of an unknown form are not shown. */
export const entriesOf = <T>(schema: z.ZodType<T>, rows: readonly unknown[]): T[] =>
  rows.flatMap((row) => schema.safeParse(row).data ?? []);

/** As `TurnSteps` of libs/agents names the calls of a step. */
export const stepId = (execution: number, id: number | null): string => `step-${execution}-${id}`;
