import { AgentEvent } from '@a2a-js/sdk/server';

const COMPLETED = 3;
const hello = { content: { $case: 'text', value: 'hello ' }, filename: '', mediaType: '' };

export default class Stubborn {
  #stop = () => undefined;

  async execute({ taskId, contextId }, bus) {
    const artifact = { artifactId: 'a', name: 'a', parts: [hello] };
    bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: false }));
    await new Promise((resolve) => (this.#stop = resolve));
    bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: true, lastChunk: true }));
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state: COMPLETED } }));
    bus.finished();
  }

  async cancelTask() {
    this.#stop();
  }
}
