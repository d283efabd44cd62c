import { AgentEvent } from '@a2a-js/sdk/server';
import { setImmediate as turn } from 'node:timers/promises';

const COMPLETED = 3;
const part = (value) => ({ content: { $case: 'text', value }, filename: '', mediaType: '' });

/** `metadata.flood` of the message has the number of chunks and the bytes of each. */
export default class Flood {
  #stopped = false;

  async execute({ taskId, contextId, userMessage }, bus) {
    const { chunks, bytes } = userMessage.metadata.flood;
    for (let n = 0; n < chunks && !this.#stopped; n++) {
      const artifact = { artifactId: `flood-${n % 4}`, name: 'flood', parts: [part('x'.repeat(bytes))] };
      const more = { append: n >= 4, lastChunk: false };
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, ...more }));
      await turn();
    }
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state: COMPLETED } }));
    bus.finished();
  }

  async cancelTask() {
    this.#stopped = true;
  }
}
