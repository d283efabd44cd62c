import type { OperationCall, UnaryOperationName, UnaryOperations } from '@baton/a2a';

/** The task a request names, for the log. */
export function requestedTask({ operation, request }: OperationCall): string | undefined {
  switch (operation) {
    case 'sendMessage':
    case 'sendStreamingMessage':
      return request.message?.taskId || undefined;
    case 'getTask':
    case 'cancelTask':
    case 'subscribeToTask':
      return request.id;
    case 'pushNotificationConfig':
      return request.taskId;
    default:
      return undefined;
  }
}

/** The task that an answer is about, for the log. */
export function answeredTask(result: UnaryOperations[UnaryOperationName]['result']): string | undefined {
  if ('$case' in result) return result.$case === 'task' ? result.value.id : result.value.taskId || undefined;
  return 'id' in result ? result.id : undefined;
}
