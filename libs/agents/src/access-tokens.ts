import type { OAuthSettings } from '@baton/a2a';

/** A server at which a turn needs to be signed in. */
export interface AccessTokenRequest {
  /** URL of the server in the settings of the agent. */
  url: string;
  settings: OAuthSettings;
}

/** The sign-ins of a tenant at servers that its agents call. The platform binds it. */
export abstract class AccessTokens {
  /**
   * An access token, which must never be shown. Undefined: nobody is signed in. Rejects with an Error whose message is for the tenant
   * if it can't be had for now.
   * @param refused the server has refused this one
   */
  abstract get(tenantId: string, request: AccessTokenRequest, refused?: string): Promise<string | undefined>;

  /** The server has refused a token that is new: the sign-in is over. */
  abstract refuse(tenantId: string, request: AccessTokenRequest, refused: string): Promise<void>;
}
