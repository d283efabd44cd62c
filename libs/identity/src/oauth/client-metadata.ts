const DOCUMENT = 'client.json';

/**
 * URL of the document that identifies Baton, beside the redirect URI. Authorization servers that take such URLs for client ids read
 * it there (OAuth Client ID Metadata Document). Undefined: it must be an https URL.
 */
export function clientUrlOf(redirectUri: string): string | undefined {
  return redirectUri.startsWith('https:') ? new URL(DOCUMENT, redirectUri).href : undefined;
}

/** Facts about Baton as a client: in the document at its URL, and when it registers itself (RFC 7591). */
export const clientMetadata = (redirectUri: string, authMethod = 'none') => ({
  client_name: 'Baton',
  // OpenID Connect Dynamic Client Registration, section 2: only native clients have a redirect URI without TLS, at this machine.
  application_type: redirectUri.startsWith('https:') ? ('web' as const) : ('native' as const),
  redirect_uris: [redirectUri],
  grant_types: ['authorization_code', 'refresh_token'],
  response_types: ['code'],
  token_endpoint_auth_method: authMethod,
});
