import { UnreachableError } from './unreachable-error.js';
export const URL_OPTION = [
  '--url <url>',
  'URL of the server (default: BATON_URL, or the npm start of this folder)',
] as const;
export const TOKEN_OPTION = [
  '--token <token>',
  'token of the tenant (default: BATON_TOKEN, or the demo token)',
] as const;
/** Whether the connection broke, so that the same call may succeed in a moment. */
export const isLost = (error: unknown): boolean =>
  // Node's only message for a body that breaks off.
  error instanceof UnreachableError || (error as { message?: unknown } | null)?.message === 'terminated';
