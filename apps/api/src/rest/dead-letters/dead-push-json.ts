import { isUuid, ProtocolError } from '@baton/a2a';
import type { DeadPush } from '@baton/tasks';
import { z } from 'zod';
import { timeSchema } from '../../openapi/schemas.js';
import { pageOf, readPage } from '../paging.js';
import { namesOfTask, taskNames } from '../task-names.js';

export const deadPush = z
  .object({
    ...taskNames,
    config_id: z.string().describe('The id of the push config'),
    agent_id: z.string(),
    receiver: z.string().describe('Origin of its URL'),
    webhook: z.boolean().describe('Whether a webhook of the tenant has made it'),
    status: z.int().nullable().describe('HTTP status of the last answer. Null: there was none'),
    error: z.string().nullable(),
    failures: z.int().describe('Tries that have failed in a row'),
    failing_since: timeSchema,
    waiting: z.int().describe('Events that it has not received'),
  })
  .meta({ id: 'DeadPush' });

type DeadPushPosition = Pick<DeadPush, 'failingSince' | 'taskId' | 'configId'>;

/** The page that a request asks for. Throws `invalid-params`. */
export async function pageOfPushes<T extends DeadPush>(
  limit: number,
  cursor: string | undefined,
  list: (page: { limit: number; after: DeadPushPosition | undefined }) => Promise<T[]>,
) {
  const request = readPage(limit, cursor);
  const after = request.after === undefined ? undefined : readPosition(request.after);
  const found = await list({ limit: limit + 1, after });
  return pageOf(found, writePosition, request);
}

const writePosition = ({ failingSince, taskId, configId }: DeadPushPosition): string =>
  `${failingSince.toISOString()} ${taskId} ${configId}`;

function readPosition(key: string): DeadPushPosition {
  const [at = '', taskId = '', ...id] = key.split(' ');
  const position = { failingSince: new Date(at), taskId, configId: id.join(' ') };
  // Postgres does not have all years that JavaScript writes with a sign.
  const isTime = /^\d{4}-/.test(at) && !Number.isNaN(position.failingSince.getTime());
  if (isTime && isUuid(taskId) && writePosition(position) === key) return position;
  throw ProtocolError.invalidParams('cursor', 'must be the next_cursor of an earlier page, or be left out');
}

export const encodeDeadPush = (push: DeadPush): z.infer<typeof deadPush> => ({
  ...namesOfTask(push.taskId),
  config_id: push.configId,
  agent_id: push.agentId,
  receiver: push.receiver,
  webhook: push.isWebhook,
  status: push.status,
  error: push.error,
  failures: push.failures,
  failing_since: push.failingSince.toISOString(),
  waiting: push.waiting,
});
