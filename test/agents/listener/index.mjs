import { AgentEvent } from '@a2a-js/sdk/server';
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const COMPLETED = 3;
const INPUT_REQUIRED = 6;

/** `ask`: asks for another message, too. `hold`: notes that it has begun, and goes on when HOLD_FILE is gone. */
export default class Listener {
  async execute({ taskId, contextId, userMessage, request }, bus) {
    const text = userMessage.parts.map(({ content }) => content?.value).join('');
    if (text.includes('hold')) appendFileSync(process.env.WITNESS_FILE, 'begun\n');
    while (text.includes('hold') && existsSync(process.env.HOLD_FILE)) await sleep(20);
    const { metadata, configuration } = request;
    const value = { metadata, configuration };
    const parts = [{ content: { $case: 'data', value }, filename: '', mediaType: '' }];
    const artifact = { artifactId: 'request', name: 'request', parts };
    bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: true }));
    const state = text.includes('ask') ? INPUT_REQUIRED : COMPLETED;
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state } }));
    bus.finished();
  }

  async cancelTask() {}
}
