import { randomUUID } from 'node:crypto';
import { Role } from '@a2a-js/sdk';
import { AgentEvent } from '@a2a-js/sdk/server';

/** The smallest agent there is: one message, no task. One instance serves every caller. */
export default {
  async execute({ contextId, userMessage }, eventBus) {
    const name = userMessage.parts.map(({ content }) => content?.value).join(' ');
    eventBus.publish(
      AgentEvent.message({
        messageId: randomUUID(),
        contextId,
        role: Role.ROLE_AGENT,
        parts: [
          { content: { $case: 'text', value: `Hello! You said: ${name}` }, filename: '', mediaType: '' },
        ],
      }),
    );
  },

  async cancelTask() {
    // It answers at once; there is nothing to stop.
  },
};
