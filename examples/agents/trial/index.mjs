import { defineAgent } from '@baton/agent';
import { randomUUID } from 'node:crypto';

/** Opens an account, asks for a name, waits until the trial is over. It survives a crash at any point. */
export default defineAgent(async ({ step, sleep, ask }) => {
  // Runs once: a later attempt gets the stored id.
  const account = await step('open account', () => ({ id: randomUUID() }));

  // The task is input-required. The answer may come in days, to any worker.
  const name = await ask('name', 'What is your name?');

  // Takes no worker and no slot, and survives restarts.
  await sleep('trial', '2s');

  return step('close account', () => `Goodbye ${name}, account ${account.id} is closed.`);
});
