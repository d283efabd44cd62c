import { AgentEvent } from '@a2a-js/sdk/server';
import { appendFileSync } from 'node:fs';

const WORKING = 2;
const CANCELED = 5;
const status = (state) => ({ state, message: undefined, timestamp: undefined });

export default class Witness {
  #stop = () => undefined;

  async execute({ taskId, contextId }, bus) {
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: status(WORKING), metadata: undefined }));
    await new Promise((resolve) => (this.#stop = resolve));
    // An agent that goes on talking after it was canceled.
    bus.publish(
      AgentEvent.statusUpdate({ taskId, contextId, status: status(CANCELED), metadata: undefined }),
    );
    bus.finished();
  }

  async cancelTask(taskId) {
    appendFileSync(process.env.WITNESS_FILE, `${taskId}\n`);
    this.#stop();
  }
}
