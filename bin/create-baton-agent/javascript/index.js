import { Role } from '@a2a-js/sdk';
import { AgentEvent } from '@a2a-js/sdk/server';
import { randomUUID } from 'node:crypto';

/** Greets whoever writes to it. Every turn gets an instance of its own. */
export default class Greeter {
  async execute({ contextId, userMessage }, eventBus) {
    console.log('I was asked', userMessage.messageId);
    eventBus.publish(AgentEvent.message(reply(contextId, `Hello, ${textOf(userMessage)}!`)));
  }

  async cancelTask() {
    // It answers at once: there is nothing to stop.
  }
}

const textOf = ({ parts }) =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join(' ');

const reply = (contextId, text) => ({
  messageId: randomUUID(),
  contextId,
  role: Role.ROLE_AGENT,
  parts: [{ content: { $case: 'text', value: text }, filename: '', mediaType: '' }],
});
