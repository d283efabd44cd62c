import { z } from 'zod';
import { SECRET_NAME } from './secret-origins.js';

/** A scope (RFC 6749, section 3.3). */
export const OAUTH_SCOPE = /^[\x21\x23-\x5b\x5d-\x7e]{1,256}$/;

const CREDENTIALS = ['tenant', 'perCaller', 'exchange'] as const;
/** What the exchange of tokens needs. */
const FOR_EXCHANGE = ['issuer', 'clientId', 'clientSecret'] as const;

/**
 * How an agent signs in at a server that it calls (OAuth 2.1). Without a client id, Baton registers itself at the authorization
 * server.
 */
export const oauthSettings = z
  .strictObject({
    /**
     * Who signs in. `tenant`: one sign-in for all callers. `perCaller`: each caller for itself. `exchange`: the same, and the tokens of users
     * of `issuer` are exchanged (RFC 8693), so that they need not sign in.
     */
    credentials: z.enum(CREDENTIALS, 'must be tenant, perCaller or exchange').default('tenant'),
    /** What to ask for. Default: what the server names. */
    scopes: z.array(z.string().regex(OAUTH_SCOPE, 'is not a scope')).max(100).optional(),
    /** Identifier of the authorization server. Default: the one that the server names. */
    issuer: z
      .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
      .max(2048)
      .optional(),
    /** A client that is registered there. */
    clientId: z.string().min(1).max(1024).optional(),
    /** Name of the secret with its password. */
    clientSecret: z.string().regex(SECRET_NAME, 'is not the name of a secret').optional(),
    /** For an exchange: the name of the server at the authorization server, if it requires one besides the URL. */
    audience: z.string().min(1).max(1024).optional(),
  })
  .refine(({ clientId, clientSecret }) => clientSecret === undefined || clientId !== undefined, {
    error: 'is the secret of a client: also set clientId',
    path: ['clientSecret'],
  })
  // Another server could name an authorization server of its own, and get the secret.
  .refine(({ issuer, clientSecret }) => clientSecret === undefined || issuer !== undefined, {
    error: 'must be set with clientSecret',
    path: ['issuer'],
  })
  .refine(({ credentials, audience }) => audience === undefined || credentials === 'exchange', {
    error: 'is only for credentials: exchange',
    path: ['audience'],
  })
  .superRefine((settings, context) => {
    if (settings.credentials !== 'exchange') return;
    const message = 'must be set with credentials: exchange';
    for (const name of FOR_EXCHANGE)
      if (settings[name] === undefined) context.addIssue({ code: 'custom', path: [name], message });
  });

export type OAuthSettings = z.output<typeof oauthSettings>;

/** Whether each caller has a sign-in of its own. */
export const isOfCaller = ({ credentials }: Pick<OAuthSettings, 'credentials'>): boolean =>
  credentials !== 'tenant';

/** The name of a server for its sign-ins: its URL in the settings of agents, in one spelling. */
export function oauthResource(url: string): string {
  const { href } = new URL(url);
  return href.split('#')[0] ?? href;
}
