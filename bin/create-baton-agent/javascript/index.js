import { defineAgent } from '@baton/agent';

/** Greets the caller. */
export default defineAgent(({ text }) => `Hello, ${text}!`);
