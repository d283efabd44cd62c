import { V03PushNotificationSerializer } from '@a2a-js/sdk/compat/v0_3/server';
import type { Message, Part, StreamResponse, Task } from '../../model.js';
import { endsTurn } from '../../task-state.js';

type Payload = NonNullable<StreamResponse['payload']>;

const serializer = new V03PushNotificationSerializer();

/**
 * The 0.3 JSON of a task, message or event, through the SDK's translation (its push body is exactly that
 * JSON; about 2 µs a frame).
 */
export function encodePayload(payload: Payload): unknown {
  fillEmptyParts(payload);
  const { body } = serializer.serialize({ payload });
  const json = JSON.parse(body) as Record<string, unknown>;
  // The SDK sets it for terminal states alone, but a stream also ends when the task waits for its caller.
  if (payload.$case === 'statusUpdate')
    json.final = !!payload.value.status && endsTurn(payload.value.status.state);
  return json;
}

/** A data part of an agent that says null is stored without content, which 0.3 can't express: say null again. */
function fillEmptyParts(payload: Payload): void {
  for (const parts of partLists(payload)) {
    for (const part of parts) part.content ??= { $case: 'data', value: null };
  }
}

function partLists(payload: Payload): Part[][] {
  switch (payload.$case) {
    case 'message':
      return [payload.value.parts];
    case 'statusUpdate':
      return ofMessages(payload.value.status?.message);
    case 'artifactUpdate':
      return payload.value.artifact ? [payload.value.artifact.parts] : [];
    case 'task':
      return ofTask(payload.value);
  }
}

const ofMessages = (...messages: (Message | undefined)[]): Part[][] =>
  messages.flatMap((message) => (message ? [message.parts] : []));

const ofTask = ({ status, history, artifacts }: Task): Part[][] => [
  ...ofMessages(status?.message, ...history),
  ...artifacts.map((artifact) => artifact.parts),
];
