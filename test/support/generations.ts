import { randomUUID } from 'node:crypto';
import type { Wired } from './wire.js';

/** Fields of a message to send. Its id is new unless given. */
export interface Said {
  text?: string;
  messageId?: string;
  contextId?: string;
  taskId?: string;
  echo?: object;
}

/** How each generation of the protocol writes the same things. */
export const GENERATIONS = {
  '1.0': {
    send: 'SendMessage',
    stream: 'SendStreamingMessage',
    message: ({ text = 'hello', echo, ...ids }: Said) => ({
      messageId: randomUUID(),
      role: 'ROLE_USER',
      parts: [{ text }],
      metadata: echo && { echo },
      ...ids,
    }),
    atOnce: { returnImmediately: true },
    task: (result: Wired): Wired => result.task,
    artifact: (result: Wired): Wired => result.artifactUpdate?.artifact,
    completed: 'TASK_STATE_COMPLETED',
    asking: 'TASK_STATE_INPUT_REQUIRED',
  },
  '0.3': {
    send: 'message/send',
    stream: 'message/stream',
    message: ({ text = 'hello', echo, ...ids }: Said) => ({
      kind: 'message',
      messageId: randomUUID(),
      role: 'user',
      parts: [{ kind: 'text', text }],
      metadata: echo && { echo },
      ...ids,
    }),
    atOnce: { blocking: false },
    task: (result: Wired): Wired => (result.kind === 'task' ? result : undefined),
    artifact: (result: Wired): Wired => result.artifact,
    completed: 'completed',
    asking: 'input-required',
  },
} as const;

export type Version = keyof typeof GENERATIONS;
