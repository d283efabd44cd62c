import { AgentEvent } from '@a2a-js/sdk/server';
import { setTimeout } from 'node:timers/promises';

const COMPLETED = 3;

export default {
  async execute({ taskId, contextId, userMessage }, bus) {
    const { chunks, bytes, hold } = userMessage.metadata;
    for (let i = 0; i < chunks; i++) {
      const parts = [
        { content: { $case: 'text', value: `${i}:`.padEnd(bytes, 'x') }, filename: '', mediaType: '' },
      ];
      const artifact = { artifactId: 'flood', name: 'flood', parts };
      bus.publish(
        AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: i > 0, lastChunk: false }),
      );
      await setTimeout(5);
    }
    if (hold) return new Promise(() => undefined);
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state: COMPLETED } }));
    bus.finished();
  },
  cancelTask: async () => undefined,
};
