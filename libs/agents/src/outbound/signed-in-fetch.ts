import { type OAuthSettings, originOf } from '@baton/a2a';
import type { TurnSecrets } from '../agent-runtime.js';
import { SignInNeeded } from '../sign-in-needed.js';

type Send = (url: string | URL, init?: RequestInit) => Promise<Response>;

/**
 * The requests to a server at which an agent must be signed in. Each has an access token. If the server refuses it, the token is refreshed
 * once, and the request sent again: the server has not carried it out.
 */
export class SignedInFetch {
  /** Nobody is signed in any more. What is between here and a call may hide the error. */
  needed: SignInNeeded | undefined;

  /** @param url of the server in the settings. Requests to other origins get no token */
  constructor(
    private readonly secrets: TurnSecrets,
    private readonly url: string,
    private readonly settings: OAuthSettings,
  ) {}

  /** Throws SignInNeeded unless somebody is signed in. */
  async assertSignedIn(): Promise<void> {
    await this.token();
  }

  /** @param send sends a request through the guard */
  over(send: Send): Send {
    return async (url, init) => {
      if (originOf(String(url)) !== originOf(this.url)) return send(url, init);
      const first = await this.token();
      const response = await send(url, withToken(init, first));
      if (response.status !== 401) return response;
      await response.body?.cancel();
      const second = await this.token(first);
      const again = await send(url, withToken(init, second));
      if (again.status !== 401) return again;
      await again.body?.cancel();
      await this.secrets.refuseAccessToken({ url: this.url, settings: this.settings }, second);
      throw this.need();
    };
  }

  private async token(refused?: string): Promise<string> {
    const found = await this.secrets.accessToken({ url: this.url, settings: this.settings }, refused);
    if (found === undefined) throw this.need();
    return found;
  }

  private need(): SignInNeeded {
    return (this.needed = new SignInNeeded({ url: this.url, settings: this.settings }));
  }
}

function withToken(init: RequestInit | undefined, token: string): RequestInit {
  const headers = new Headers(init?.headers);
  headers.set('authorization', `Bearer ${token}`);
  return { ...init, headers: [...headers] };
}
