import { Role, type Message } from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from '@a2a-js/sdk/server';
import { randomUUID } from 'node:crypto';

/** Greets whoever writes to it. Every turn gets an instance of its own. */
export default class Greeter implements AgentExecutor {
  async execute({ contextId, userMessage }: RequestContext, eventBus: ExecutionEventBus): Promise<void> {
    console.log('I was asked', userMessage.messageId);
    eventBus.publish(AgentEvent.message(reply(contextId, `Hello, ${textOf(userMessage)}!`)));
  }

  async cancelTask(): Promise<void> {
    // It answers at once: there is nothing to stop.
  }
}

const textOf = ({ parts }: Message): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join(' ');

const reply = (contextId: string, text: string): Message => ({
  messageId: randomUUID(),
  contextId,
  taskId: '',
  role: Role.ROLE_AGENT,
  parts: [{ content: { $case: 'text', value: text }, filename: '', mediaType: '', metadata: undefined }],
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});
