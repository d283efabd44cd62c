import { AgentEvent } from '@a2a-js/sdk/server';

const COMPLETED = 3;
const textOf = ({ parts }) => parts.map(({ content }) => content.value).join('');

const post = async (url, key, signal) => {
  const response = await fetch(url, { method: 'POST', signal, headers: { 'idempotency-key': key } });
  if (!response.ok) throw new Error(`HTTP ${response.status}`);
  return response.text();
};

/** How a payment whose outcome is unknown goes on. */
const OPTIONS = {
  repeat: () => ({}),
  ask: () => ({ onUnknown: 'ask' }),
  fail: () => ({ onUnknown: 'fail' }),
  verify: (url) => ({
    verify: async ({ key, signal }) => {
      const found = await fetch(`${url}/${key}`, { signal });
      return found.ok ? { done: true, result: await found.text() } : { done: false };
    },
  }),
};

/** Pays one after the other. With `back` a payment can be paid back, and with `fails` the code throws in the end. */
export default class Payer {
  async execute({ taskId, contextId, userMessage, context }, bus) {
    const { payments, fails } = JSON.parse(textOf(userMessage));
    const paid = [];
    for (const { name, url, how, back } of payments) {
      const undo = back && { compensate: (_, { key, signal }) => post(back, key, signal) };
      const options = { backoff: 20, ...OPTIONS[how](url), ...undo };
      paid.push((await context.step(name, ({ key, signal }) => post(url, key, signal), options)) ?? 'asked');
    }
    if (fails) throw new Error('the order fails');
    const message = {
      messageId: '',
      role: 2,
      parts: [{ content: { $case: 'text', value: paid.join(' ') } }],
    };
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state: COMPLETED, message } }));
  }

  async cancelTask() {
    // A payment that is under way is abandoned.
  }
}
