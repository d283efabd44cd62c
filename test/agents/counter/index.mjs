import { AgentEvent } from '@a2a-js/sdk/server';
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const COMPLETED = 3;
const note = (word) => appendFileSync(process.env.COUNTER_FILE, `${word}\n`);

export default {
  async execute({ taskId, contextId }, bus) {
    note('begin');
    do await sleep(20);
    while (existsSync(process.env.HOLD_FILE));
    note('end');
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state: COMPLETED } }));
    bus.finished();
  },
  cancelTask: async () => undefined,
};
