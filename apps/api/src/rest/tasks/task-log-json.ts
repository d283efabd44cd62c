import { ProtocolError, serializePayload, type StreamItem } from '@baton/a2a';
import type { ConsoleLineRecord } from '@baton/tasks';
import { z } from 'zod';
import { timeSchema } from '../../openapi/schemas.js';
import { nextCursor, readPage, writeCursor } from '../paging.js';

export const eventTimes = z.object({
  task_id: z.string(),
  times: z.array(z.object({ seq: z.int(), at: timeSchema }).meta({ id: 'EventTime' })),
  more: z.boolean(),
});
export const consolePage = z.object({
  task_id: z.string(),
  lines: z.array(
    z
      .object({
        position: z.int().describe('From 1, without holes'),
        at: timeSchema,
        level: z.enum(['debug', 'info', 'warn', 'error']),
        run_id: z.string(),
        attempt: z.int(),
        text: z.string(),
      })
      .meta({ id: 'ConsoleLine' }),
  ),
  next_cursor: nextCursor,
});

const encodeConsoleLine = ({ position, at, level, runId, attempt, text }: ConsoleLineRecord) => ({
  position,
  at: at.toISOString(),
  level,
  run_id: runId,
  attempt,
  text,
});

/** Lines that an agent's code has written to its console. @param more whether there are further lines */
export function encodeConsolePage(
  taskId: string,
  lines: readonly ConsoleLineRecord[],
  more: boolean,
): z.infer<typeof consolePage> {
  const last = more ? lines.at(-1) : undefined;
  return {
    task_id: taskId,
    lines: lines.map(encodeConsoleLine),
    next_cursor: last ? writeCursor(String(last.position)) : null,
  };
}

/** The position after which a page of the console begins. Throws `invalid-params` for an invalid cursor. */
export function readConsoleCursor(cursor: string | undefined): number {
  if (cursor === undefined || cursor === '') return 0;
  const { after } = readPage(1, cursor);
  if (after !== undefined && /^\d{1,9}$/.test(after)) return Number(after);
  throw ProtocolError.invalidParams('cursor', 'must be the next_cursor of an earlier page, or be left out');
}

/** One event of the log: the StreamResponse of A2A 1.0 as JSON, with its sequence as `seq`. */
export const encodeEvent = (item: StreamItem): string =>
  // Its text is stored in this form. To ask for the payload would parse it.
  `{"seq":${item.sequence},${(item.json ?? serializePayload(item.payload)).slice(1)}`;
