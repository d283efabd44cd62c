import { AgentEvent } from '@a2a-js/sdk/server';
import { existsSync } from 'node:fs';

const COMPLETED = 3;

export default {
  async execute({ taskId, contextId, userMessage }, bus) {
    const { antidote } = userMessage.metadata ?? {};
    if (!antidote || !existsSync(antidote)) process.kill(process.pid, 'SIGKILL');
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state: COMPLETED } }));
    bus.finished();
  },
  cancelTask: async () => undefined,
};
