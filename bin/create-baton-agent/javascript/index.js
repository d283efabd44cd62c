import { defineAgent } from '@baton/agent';

/** Greets whoever writes to it. */
export default defineAgent(({ text }) => `Hello, ${text}!`);
