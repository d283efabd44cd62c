import { defineAgent } from '@baton/agent';

/** Greets its caller. */
export default defineAgent(({ text }) => `Hello, ${text}!`);
