import { ErrorResponse, type User, UserManager, WebStorageStateStore } from 'oidc-client-ts';
import { consoleSettings } from './settings';
import { SERVER_URL } from '../base';

let manager: Promise<UserManager> | undefined;

/** The authorization code flow with PKCE. Nothing is in a frame: tokens are renewed with a refresh token, if there is one. */
function userManager(): Promise<UserManager> {
  manager ??= consoleSettings().then(({ oidc }) => {
    if (!oidc) throw new Error('There is no OpenID provider here. Sign in with a token.');
    const { audience } = oidc;
    return new UserManager({
      authority: oidc.issuer,
      client_id: oidc.client_id,
      scope: oidc.scope,
      redirect_uri: `${SERVER_URL}/console/signed-in`,
      response_type: 'code',
      automaticSilentRenew: false,
      monitorSession: false,
      userStore: new WebStorageStateStore({ store: window.sessionStorage }),
      stateStore: new WebStorageStateStore({ store: window.sessionStorage }),
      ...(audience !== undefined && {
        resource: audience,
        extraQueryParams: { audience },
        extraTokenParams: { resource: audience },
      }),
    });
  });
  manager.catch(() => (manager = undefined));
  return manager;
}

/** Leads the browser to the provider. @param to where it goes after sign-in, below `/console` */
export async function signInAtProvider(to: string): Promise<void> {
  await (await userManager()).signinRedirect({ state: to });
}

/** Ends the sign-in that the provider has led back from. @returns the name of the user, and where it wanted to go */
export async function completeSignIn(): Promise<{ name: string; to: string }> {
  const user = await (await userManager()).signinCallback().catch((error: unknown) => {
    throw explain(error);
  });
  if (!user) throw new Error('The provider has not signed you in. Sign in again.');
  const { name, email, preferred_username: username, sub } = user.profile;
  const to = typeof user.state === 'string' ? user.state : '/';
  return { name: name ?? username ?? email ?? sub, to };
}

/** What a person can do about it. The library's own words are for programmers. */
function explain(error: unknown): unknown {
  if (error instanceof ErrorResponse) {
    return new Error(`The provider has refused: ${error.error_description ?? error.error}. Sign in again.`);
  }
  const isUnknown = error instanceof Error && error.message.startsWith('No matching state');
  return isUnknown
    ? new Error('This sign-in was not begun in this tab, or it was over already. Sign in again.')
    : error;
}

export const currentUser = async (): Promise<User | null> => (await userManager()).getUser();
export const renewUser = async (): Promise<User | null> => (await userManager()).signinSilent();
export const forgetUser = async (): Promise<void> => (await userManager()).removeUser();
