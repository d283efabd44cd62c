import { Message, SendMessageRequest, StreamResponse, Task } from '@a2a-js/sdk';
import type { DefaultRequestHandler, ServerCallContext } from '@a2a-js/sdk/server';

const TASK_PATH = /^\/tasks\/([^:]+)(:\w+)?$/;
const INFO = { '@type': 'type.googleapis.com/google.rpc.ErrorInfo', domain: 'a2a-protocol.org' };
const NOT_FOUND = {
  error: {
    code: 404,
    status: 'NOT_FOUND',
    message: 'No such task',
    details: [{ ...INFO, reason: 'TASK_NOT_FOUND' }],
  },
};
const METHODS: Record<string, string> = { ':subscribe': 'SubscribeToTask', ':cancel': 'CancelTask' };

/** What JSON-RPC calls a request to a path. */
export function methodOf(path: string): string {
  if (path.startsWith('/message:'))
    return path === '/message:stream' ? 'SendStreamingMessage' : 'SendMessage';
  return METHODS[TASK_PATH.exec(path)?.[2] ?? ''] ?? 'GetTask';
}

/** A request of the HTTP+JSON binding of A2A 1.0, below the interface's URL. */
export interface RestCall {
  path: string;
  body: string;
  context: ServerCallContext;
}

/**
 * The HTTP+JSON binding of A2A 1.0 on the SDK's request handler, whose own is for Express only.
 *
 * @returns a JSON answer, or the events of a stream
 */
export async function handleRest(
  handler: DefaultRequestHandler,
  { path, body, context }: RestCall,
): Promise<object> {
  if (path.startsWith('/message:')) {
    const request = SendMessageRequest.fromJSON(JSON.parse(body));
    if (path === '/message:stream') return encoded(handler.sendMessageStream(request, context));
    const answer = await handler.sendMessage(request, context);
    return 'messageId' in answer ? { message: Message.toJSON(answer) } : { task: Task.toJSON(answer) };
  }
  const [, id = '', verb] = TASK_PATH.exec(path) ?? [];
  const request = { tenant: '', id };
  if (verb === ':subscribe') return encoded(handler.resubscribe(request, context));
  if (verb === ':cancel')
    return Task.toJSON(await handler.cancelTask({ ...request, metadata: {} }, context)) as object;
  const found = await handler.getTask(request, context).catch(() => undefined);
  return found ? (Task.toJSON(found) as object) : NOT_FOUND;
}

async function* encoded(events: AsyncIterable<StreamResponse>): AsyncGenerator {
  for await (const event of events) yield StreamResponse.toJSON(event);
}
