import { TaskState } from '@a2a-js/sdk';
import { AgentEvent } from '@a2a-js/sdk/server';
import { randomUUID } from 'node:crypto';

/** Opens an account, asks for a name, waits until the trial is over. It survives a crash at any point. */
export default class TrialExecutor {
  async execute({ taskId, contextId, context }, eventBus) {
    const { step, sleep, waitForInput } = context;

    // Runs once: a later attempt gets the stored id.
    const account = await step('open account', () => ({ id: randomUUID() }));

    // The task is input-required. The answer may come in days, to any worker.
    const answer = await waitForInput('name', 'What is your name?');
    const name = answer.parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');

    // Takes no worker and no slot, and survives restarts.
    await sleep('trial', '2s');

    const farewell = await step('close account', () => `Goodbye ${name}, account ${account.id} is closed.`);
    const message = {
      messageId: randomUUID(),
      role: 2,
      parts: [{ content: { $case: 'text', value: farewell } }],
    };
    const status = { state: TaskState.TASK_STATE_COMPLETED, message };
    eventBus.publish(AgentEvent.statusUpdate({ taskId, contextId, status }));
  }

  async cancelTask() {
    // Nothing runs while the task waits.
  }
}
