import { defineAgent } from '@baton/agent';

const PAUSE_MS = 100;

/** Durable steps until it is canceled. Each posts to the address in the message which process makes it. */
export default defineAgent(async ({ text, step }) => {
  for (let n = 0; ; n++) {
    await step(`tick ${n}`, async () => {
      await fetch(text, { method: 'POST', body: `${process.ppid} ${process.pid}` });
      await new Promise((resolve) => setTimeout(resolve, PAUSE_MS));
      return n;
    });
  }
});
