import { isOfCaller, type OAuthSettings, originOf } from '@baton/a2a';
import type { SignedInCall } from '../access-tokens.js';
import type { TurnSecrets } from '../agent-runtime.js';
import { askedScopes } from './asked-scopes.js';
import { SignInNeeded, scopesShown } from '../sign-in-needed.js';

type Send = (url: string | URL, init?: RequestInit) => Promise<Response>;

/**
 * The requests to a server at which an agent must be signed in. Each has an access token. If the server refuses it, the token is refreshed
 * once, and the request sent again: the server has not carried it out. If it requires more scopes than the token has, its caller is asked to
 * sign in with them.
 */
export class SignedInFetch {
  /** Set when the sign-in has ended or lacks scopes. The MCP client between here and the caller may hide the error. */
  needed: SignInNeeded | undefined;

  /** @param url of the server in the settings. Requests to other origins get no token */
  constructor(
    private readonly secrets: TurnSecrets,
    private readonly url: string,
    private readonly settings: OAuthSettings,
  ) {}

  /** Throws SignInNeeded without a sign-in. */
  async assertSignedIn(): Promise<void> {
    await this.token();
  }

  /** Records a call in the audit log. Call it before the call is sent. Throws SignInNeeded without a sign-in. */
  async note(call: SignedInCall): Promise<void> {
    if (!(await this.secrets.noteCall({ url: this.url, settings: this.settings }, call)))
      throw this.signInError();
  }

  /** @param send sends a request through the guard */
  over(send: Send): Send {
    return async (url, init) => {
      if (originOf(String(url)) !== originOf(this.url)) return send(url, init);
      const first = await this.token();
      const response = await send(url, withToken(init, first));
      if (response.status === 403 && init?.method === 'POST')
        return this.widened(response, first, (token) => send(url, withToken(init, token)));
      if (response.status !== 401) return response;
      await response.body?.cancel();
      const second = await this.token(first);
      const again = await send(url, withToken(init, second));
      if (again.status !== 401) return again;
      await again.body?.cancel();
      await this.secrets.refuseAccessToken({ url: this.url, settings: this.settings }, second);
      throw this.signInError();
    };
  }

  private async token(refused?: string): Promise<string> {
    const found = await this.secrets.accessToken({ url: this.url, settings: this.settings }, refused);
    if (found === undefined) throw this.signInError();
    return found;
  }

  /**
   * The server may require more scopes (RFC 6750, section 3.1). It has not carried out the request then.
   * @param again sends the request with another token
   */
  private async widened(
    response: Response,
    token: string,
    again: (token: string) => Promise<Response>,
    isFirst = true,
  ): Promise<Response> {
    const asked = response.status === 403 ? await askedScopes(response) : undefined;
    if (!asked) return response;
    await response.body?.cancel();
    const request = { url: this.url, settings: this.settings };
    const wider = await this.secrets.widerAccess(request, token, asked);
    if (wider && 'token' in wider && isFirst)
      return this.widened(await again(wider.token), wider.token, again, false);
    const missing = scopesShown(asked);
    if (!wider || 'token' in wider)
      return refusalResponse(
        `it wants ${missing}, for which the last sign-in has asked already: the authorization server has not granted it, or the ` +
          'server does not count it. Grant it there, sign out and sign in again',
      );
    const { scopes } = wider;
    if (!isOfCaller(this.settings))
      return refusalResponse(
        `the sign-in of the tenant lacks ${missing}: set oauth.scopes of the server to ${JSON.stringify(scopes)}, and let an ` +
          'administrator sign in again',
      );
    throw this.signInError(scopes, asked);
  }

  private signInError(scopes?: string[], missing?: string[]): SignInNeeded {
    const settings = scopes ? { ...this.settings, scopes } : this.settings;
    return (this.needed = new SignInNeeded({ url: this.url, settings }, missing));
  }
}

/** A refusal in words of Baton, in place of the server's. */
const refusalResponse = (text: string): Response =>
  new Response(text, { status: 403, headers: { 'content-type': 'text/plain; charset=utf-8' } });

function withToken(init: RequestInit | undefined, token: string): RequestInit {
  const headers = new Headers(init?.headers);
  headers.set('authorization', `Bearer ${token}`);
  return { ...init, headers: [...headers] };
}
