import { AgentEvent } from '@a2a-js/sdk/server';
import { existsSync } from 'node:fs';

const COMPLETED = 3;

export default {
  async execute({ taskId, contextId }, bus) {
    const say = (value, append) => {
      const parts = [{ content: { $case: 'text', value }, filename: '', mediaType: '' }];
      const artifact = { artifactId: 'a', name: 'a', parts };
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk: append }));
    };
    say('before ', false);
    // What was said is on its way when the computing begins.
    await new Promise((resolve) => setTimeout(resolve, 50));
    while (existsSync(process.env.HOLD_FILE ?? ''));
    say('after', true);
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state: COMPLETED } }));
    bus.finished();
  },
  cancelTask: async () => undefined,
};
