import { OAUTH_SCOPE } from '@baton/a2a';

/** A challenge is written by another server. An agent asks for a few scopes. */
const MAX_SCOPES = 100;

/**
 * The scopes that a server asks for with a refusal (RFC 6750, section 3.1).
 * @returns undefined: the token has enough of them, or the server does not say which it lacks
 */
export async function askedScopes(response: Response): Promise<string[] | undefined> {
  const { extractWWWAuthenticateParams } = await import('@modelcontextprotocol/sdk/client/auth.js');
  const { error, scope = '' } = extractWWWAuthenticateParams(response);
  if (error !== 'insufficient_scope') return undefined;
  const scopes = [...new Set(scope.split(' ').filter((one) => OAUTH_SCOPE.test(one)))];
  return scopes.length > 0 && scopes.length <= MAX_SCOPES ? scopes : undefined;
}
