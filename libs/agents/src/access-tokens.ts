import type { OAuthSettings } from '@baton/a2a';

/** A server at which a turn needs to be signed in. */
export interface AccessTokenRequest {
  /** URL of the server in the settings of the agent. */
  url: string;
  settings: OAuthSettings;
}

/** The tenant and the caller that an agent works for. */
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
  /** How long it is valid, in ms. */
  forMs: number;
}

/** A call that an agent makes with a sign-in, for the audit log: never its input. */
export interface SignedInCall {
  /** The called tool of an MCP server, or the host of a remote agent. */
  kind: 'tool' | 'remote-agent';
  name: string;
  /** Name of the MCP server in the settings of the agent. */
  server?: string;
  /** Id of the call in its task. */
  callId?: string;
}

/** The sign-ins of a tenant and its callers at servers that its agents call. The platform binds it. */
export abstract class AccessTokens {
  /**
   * An access token, which must never be shown. Undefined: there is no sign-in. Rejects with an Error whose message is for the tenant
   * if it cannot be had for now.
   * @param refused the server has refused this one
   */
  abstract get(
    holder: TokenHolder,
    request: AccessTokenRequest,
    refused?: string,
  ): Promise<string | undefined>;

  /**
   * Records a call in the audit log before it is sent. The record is durable when this resolves.
   * @returns false: there is no sign-in, so the call must not be sent
   */
  abstract noteCall(holder: TokenHolder, request: AccessTokenRequest, call: SignedInCall): Promise<boolean>;

  /** The server has refused a token that is new: the sign-in is over. */
  abstract refuse(holder: TokenHolder, request: AccessTokenRequest, refused: string): Promise<void>;

  /**
   * The remedy if the server requires more scopes for a request than the token has.
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
   * A link for the caller of the task. The task continues by itself when the caller has signed in.
   * @param wanted the server, or a child task that waits for the same
   * @returns undefined: the caller cannot sign in, or has let the time of an earlier link pass
   */
  abstract offer(
    holder: TokenHolder,
    wanted: AccessTokenRequest | { childTaskId: string },
  ): Promise<SignInOffer | undefined>;
}
