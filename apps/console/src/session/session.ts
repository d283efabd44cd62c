import type { User } from 'oidc-client-ts';
import { useSyncExternalStore } from 'react';

// The token is in the storage of this tab alone: it is gone when the tab is closed, and no other tab has it.
const KEY = 'baton.session';
/** Key of the draft that the user writes, followed by the tenant. Signing out deletes it. */
export const DRAFT_KEY = 'baton.draft';
/** A token is renewed when it expires in less than this. */
const RENEW_SECONDS = 30;

/** How the user has signed in: with a token of Baton, or at the OpenID provider, whose library keeps the token. */
type Session = { kind: 'token'; token: string } | { kind: 'oidc'; name: string };

interface SessionState {
  session: Session | undefined;
  /** Why the last session has ended. */
  reason: string | undefined;
}

const listeners = new Set<() => void>();
let state: SessionState = { session: read(), reason: undefined };

function read(): Session | undefined {
  try {
    const session = JSON.parse(sessionStorage.getItem(KEY) ?? 'null') as Session | null;
    return session ?? undefined;
  } catch {
    return undefined;
  }
}

function change(next: SessionState): void {
  state = next;
  if (next.session) sessionStorage.setItem(KEY, JSON.stringify(next.session));
  else sessionStorage.removeItem(KEY);
  for (const listener of listeners) listener();
}

/** Begins a session. It ends with the tab, or when the token is no longer valid. */
export function beginSession(session: Session): void {
  change({ session, reason: undefined });
}

/** Ends the session. @param reason shown on the sign-in page. Unset: the user has signed out */
export function endSession(reason?: string): void {
  if (!state.session) return;
  const { kind } = state.session;
  if (reason === undefined) forgetDrafts();
  change({ session: undefined, reason });
  if (kind === 'oidc') void import('./oidc').then(({ forgetUser }) => forgetUser());
}

function forgetDrafts(): void {
  for (const key of Object.keys(sessionStorage))
    if (key.startsWith(DRAFT_KEY)) sessionStorage.removeItem(key);
}

export const isSignedIn = (): boolean => state.session !== undefined;

/** Called after every change of the session. Returns how to stop. */
export function onSession(listener: () => void): () => void {
  listeners.add(listener);
  return () => listeners.delete(listener);
}

/** The session as it is now. */
export const useSession = (): SessionState => useSyncExternalStore(onSession, () => state);

/** The token for the next call. Undefined if the user is signed out. */
export async function accessToken(): Promise<string | undefined> {
  const { session } = state;
  if (session?.kind !== 'oidc') return session?.token;
  const { currentUser, renewUser } = await import('./oidc');
  const user: User | null = await currentUser();
  if (user && (user.expires_in ?? Infinity) > RENEW_SECONDS) return user.access_token;
  const renewed = user?.refresh_token === undefined ? user : await renewUser().catch(() => null);
  if (renewed && renewed.expired !== true) return renewed.access_token;
  endSession('Your sign-in has expired. Sign in again.');
  return undefined;
}
