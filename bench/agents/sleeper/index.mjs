import { defineAgent } from '@baton/agent';

/** Sleeps without a worker. */
export default defineAgent(async ({ sleep }) => {
  await sleep('night', '1h');
  return 'morning';
});
