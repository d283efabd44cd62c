import { randomBytes } from 'node:crypto';
import type { Demo } from './home.js';

/** How long the link works. */
const LIFE_MS = 10 * 60_000;
const LOOPBACK_NAMES: readonly string[] = ['localhost', '127.0.0.1', '[::1]'];

/** A link that signs in to the console once, and the data of it that the API needs (`apps/api/src/console/sign-in-link.ts`). */
export interface PrintedLink {
  /** With the code as its fragment, which no browser sends and no log has. */
  url: string;
  message: { type: 'sign-in-link'; code: string; token: string; expiresAt: number };
}

/** A new link for the token of the tenant `demo`. Undefined if the console is not at this machine (PUBLIC_URL). */
export function newPrintedLink({ url, token }: Pick<Demo, 'url' | 'token'>): PrintedLink | undefined {
  if (!LOOPBACK_NAMES.includes(new URL(url).hostname)) return undefined;
  const code = randomBytes(24).toString('base64url');
  const expiresAt = Date.now() + LIFE_MS;
  return { url: `${url}/console/link#${code}`, message: { type: 'sign-in-link', code, token, expiresAt } };
}
