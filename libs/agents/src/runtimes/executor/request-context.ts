import { Message, Task } from '@a2a-js/sdk';
import { RequestContext, ServerCallContext } from '@a2a-js/sdk/server';
import type { TurnRequest } from './protocol.js';

/** What the SDK's own server would give an executor for this turn. Every call makes objects of its own. */
export function requestContext(request: TurnRequest): RequestContext {
  const { tenantId, taskId, contextId, extensions, message, task, referenceTasks } = request;
  const call = new ServerCallContext({
    tenant: tenantId,
    user: { isAuthenticated: true, userName: tenantId },
    requestedExtensions: extensions,
    requestedVersion: '1.0',
  });
  const sent = {
    tenant: tenantId,
    message: Message.fromJSON(message),
    configuration: undefined,
    metadata: undefined,
  };
  const stored = task === undefined ? undefined : Task.fromJSON(task);
  const references = referenceTasks?.map((reference) => Task.fromJSON(reference));
  return new RequestContext(sent, taskId, contextId, call, stored, references);
}
