import { Artifact, type JsonObject, ProtocolError } from '@baton/a2a';
import type { ArtifactPosition, PageOfArtifacts } from '@baton/tasks';
import { z } from 'zod';
import { a2aSchema } from '../../openapi/schemas.js';
import { nextCursor } from '../paging.js';

export const artifactPage = z.object({
  task_id: z.string(),
  as_of_event: z.int(),
  artifacts: z.array(
    z.object({
      append: z.boolean().describe('It continues the artifact before'),
      artifact: a2aSchema('An artifact, or a piece of it'),
    }),
  ),
  next_cursor: nextCursor,
});

/** One page of a task's artifacts, each in the JSON of A2A 1.0. */
export const encodeArtifactPage = (
  id: string,
  { head, pieces, next }: PageOfArtifacts,
): z.infer<typeof artifactPage> => ({
  task_id: id,
  as_of_event: head,
  artifacts: pieces.map(({ append, artifact }) => ({
    append,
    artifact: Artifact.toJSON(artifact) as JsonObject,
  })),
  next_cursor: next ? encodeCursor(next) : null,
});

const encodeCursor = ({ head, after }: ArtifactPosition): string =>
  Buffer.from(`${head}.${after}`).toString('base64url');

/** Decodes a page's `next_cursor`. Throws `invalid-params` for anything else. */
export function readArtifactCursor(cursor: string): ArtifactPosition {
  const [, head, after] = /^(\d{1,10})\.(\d{1,10})$/.exec(Buffer.from(cursor, 'base64url').toString()) ?? [];
  const position = { head: Number(head), after: Number(after) };
  if (position.after < position.head && encodeCursor(position) === cursor) return position;
  throw ProtocolError.invalidParams('cursor', 'must be the next_cursor of an earlier page, or be left out');
}
