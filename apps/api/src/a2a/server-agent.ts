import type { Agent } from '@baton/a2a';

/**
 * What the server says of itself to a caller without a token. Its address is that of the built-in agent that
 * every tenant has, so a client that goes by this card and has a token is answered.
 */
export const SERVER_AGENT: Agent = {
  id: 'index',
  slug: 'index',
  origin: 'builtin',
  definition: {
    name: 'Baton',
    description:
      "A durable, multi-tenant A2A server. Asked with a tenant's bearer token, this address shows the card of " +
      "the tenant's default agent; the card of any other agent is below /agents/{agent}/.well-known/.",
    version: '1.0',
    runtime: 'index',
    config: {},
    skills: [],
    inputModes: [],
    outputModes: [],
    extensions: [],
  },
};
