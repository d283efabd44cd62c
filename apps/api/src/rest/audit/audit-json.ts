import { decodePageToken, encodePageToken } from '@baton/a2a';
import { AuditLog } from '@baton/identity';
import { z } from 'zod';
import { timeSchema } from '../../openapi/schemas.js';
import { nextCursor } from '../paging.js';

const auditRecord = z
  .object({
    id: z.string(),
    at: timeSchema,
    tenant_id: z.string().nullable().describe('Null: it is about the installation'),
    actor: z.object({ kind: z.string(), key: z.string(), name: z.string().nullable() }),
    source: z.string().nullable().describe('The network of the caller, such as 192.0.2.0/24'),
    request_id: z.string().nullable().describe('`X-Request-Id` of the call'),
    action: z.string(),
    target: z.object({ kind: z.string(), name: z.string() }),
    outcome: z.enum(['ok', 'refused']),
    detail: z.record(z.string(), z.unknown()),
  })
  .meta({ id: 'AuditRecord' });
export const auditPage = z.object({ records: z.array(auditRecord), next_cursor: nextCursor });

/** The record after which the page begins. Throws `invalid-params`. */
export function readAuditCursor(cursor: string | undefined) {
  const position = cursor ? decodePageToken(cursor, 'cursor') : undefined;
  return position && { at: position.statusAt, id: position.taskId };
}

export const encodeAuditPage = ({
  records,
  last,
}: Awaited<ReturnType<AuditLog['page']>>): z.infer<typeof auditPage> => ({
  records,
  next_cursor: last ? encodePageToken({ statusAt: last.at, taskId: last.id }) : null,
});
