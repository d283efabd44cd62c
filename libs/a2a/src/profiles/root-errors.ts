import type { ErrorOverrides } from '../rpc-error.js';

/** What the systems at the root path say of errors: Capsule's and Society's clients share it. */
export const ROOT_ERRORS: ErrorOverrides = {
  internal: { message: () => 'Internal error' },
  'agent-threw': { code: -32603, reason: 'INTERNAL_ERROR', message: () => 'Internal error' },
  'method-not-found': {
    message: ({ detail }) => `method not found: ${detail.metadata?.method ?? ''}`,
  },
};
