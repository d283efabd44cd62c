import { defineAgent } from '@baton/agent';

/** Three durable steps that do nothing else: the cost is that of the steps. */
export default defineAgent(async ({ text, step }) => {
  const one = await step('one', () => `${text} 1`);
  const two = await step('two', () => `${one} 2`);
  return step('three', () => `${two} 3`);
});
