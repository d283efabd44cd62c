import type { OAuthSettings } from '@baton/a2a';

/** A server at which a turn needs to be signed in. */
export interface AccessTokenRequest {
  /** URL of the server in the settings of the agent. */
  url: string;
  settings: OAuthSettings;
}

/** For whom an agent works. */
export interface TokenHolder {
  tenantId: string;
  /** The task, and the key of its owner. Unset: there is no task, and no caller to sign in. */
  task?: { id: string; owner: string | null; agent: string } | undefined;
}

/** What helps against a token with too few scopes: another token that is there by now, or a sign-in with these scopes. */
export type WiderAccess = { token: string } | { scopes: string[] };

/** A link with which the caller of a task signs in. */
export interface SignInOffer {
  link: string;
  /** How long it is good, in ms. */
  forMs: number;
}

/** The sign-ins of a tenant and its callers at servers that its agents call. The platform binds it. */
export abstract class AccessTokens {
  /**
   * An access token, which must never be shown. Undefined: nobody is signed in. Rejects with an Error whose message is for the tenant
   * if it can't be had for now.
   * @param refused the server has refused this one
   */
  abstract get(
    holder: TokenHolder,
    request: AccessTokenRequest,
    refused?: string,
  ): Promise<string | undefined>;

  /** The server has refused a token that is new: the sign-in is over. */
  abstract refuse(holder: TokenHolder, request: AccessTokenRequest, refused: string): Promise<void>;

  /**
   * What helps if the server wants more scopes for a request than a token has.
   * @param refused this token
   * @param asked what the server names
   * @returns undefined: nothing, because the last sign-in has asked for these scopes already
   */
  abstract wider(
    holder: TokenHolder,
    request: AccessTokenRequest,
    refused: string,
    asked: readonly string[],
  ): Promise<WiderAccess | undefined>;

  /**
   * A link for the caller of the task. The task goes on by itself when the caller has signed in.
   * @param wanted the server, or a child task that waits for the same
   * @returns undefined: the caller cannot sign in, or has let the time of an earlier link pass
   */
  abstract offer(
    holder: TokenHolder,
    wanted: AccessTokenRequest | { childTaskId: string },
  ): Promise<SignInOffer | undefined>;
}
