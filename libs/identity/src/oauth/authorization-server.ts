import { messageOf } from '@baton/telemetry';
import { failureReason, type OutboundCalls, OutboundRefused } from '@baton/outbound';
import type * as Sdk from '@modelcontextprotocol/sdk/client/auth.js';
import type { AuthorizationServerMetadata, OAuthTokens } from '@modelcontextprotocol/sdk/shared/auth.js';
import { clientMetadata } from './client-metadata.js';
import { OAuthFailure } from './oauth-failure.js';
import { oneLine } from './one-line.js';

/** Maximum size of an answer. Metadata and tokens have some kilobytes. */
const MAX_BYTES = 256 * 1024;
/** Maximum time of a request. A person, or a run with its slot, waits. */
const TIMEOUT_MS = 15_000;
/** Maximum length of a URL or a token that is stored. */
const MAX_TEXT = 16 * 1024;

/** Names of RFC 8693. */
const TOKEN_EXCHANGE = 'urn:ietf:params:oauth:grant-type:token-exchange';
const ACCESS_TOKEN = 'urn:ietf:params:oauth:token-type:access_token';
const JWT = 'urn:ietf:params:oauth:token-type:jwt';

/** How to use an authorization server for one resource. There is nothing secret in it. */
export interface OAuthTerms {
  issuer: string;
  authorizationEndpoint: string;
  tokenEndpoint: string;
  registrationEndpoint?: string;
  revocationEndpoint?: string;
  /** How clients may prove who they are at the token endpoint. */
  authMethods: string[];
  /** The authorization server names itself in its answers (RFC 9207). */
  saysIssuer: boolean;
  /** It takes the URL of a document for a client id. */
  takesClientUrls: boolean;
  /** `resource` of the requests (RFC 8707). */
  resource: string;
  /** Scopes that the resource names. */
  scopes?: string[];
}

/** Who Baton is for an authorization server. */
export interface OAuthClientId {
  client_id: string;
  client_secret?: string | undefined;
  token_endpoint_auth_method?: string | undefined;
}

export interface TokenSet {
  access: string;
  refresh?: string;
  scope?: string;
  /** Seconds. Unset: the authorization server did not say. */
  expiresIn?: number;
}

/** Loaded with the first sign-in. */
const sdk = (): Promise<typeof Sdk> => import('@modelcontextprotocol/sdk/client/auth.js');

/** The requests of one tenant to authorization servers. Everything that they answer is bounded in size and time, and checked. */
export class AuthorizationServer {
  /** @param isReachable rejects for an address that the tenant may not call */
  constructor(
    private readonly outbound: OutboundCalls,
    private readonly isReachable: (url: URL) => Promise<void>,
  ) {}

  /**
   * Finds out how to sign in at a resource (RFC 9728, RFC 8414, OpenID Connect Discovery).
   * @param issuer of the settings: the resource is not asked then
   */
  async discover(resource: string, issuer?: string): Promise<OAuthTerms> {
    const { discoverAuthorizationServerMetadata } = await sdk();
    const named = await this.resourceMetadata(resource, issuer);
    const url = issuer ?? named.servers[0] ?? new URL(resource).origin;
    assertSafe('issuer', url);
    const fetchFn = this.fetch;
    const metadata = await this.said(url, () => discoverAuthorizationServerMetadata(url, { fetchFn }));
    if (!metadata)
      throw new OAuthFailure('unusable', `${originOf(url)} has no metadata of an authorization server`);
    // Otherwise one server could answer for another (RFC 8414, section 3.3).
    if (withoutSlash(metadata.issuer) !== withoutSlash(url)) {
      throw new OAuthFailure(
        'unusable',
        `the metadata of ${oneLine(url)} is that of another issuer, ${oneLine(metadata.issuer)}`,
      );
    }
    return this.termsOf(metadata, named.resource, named.scopes);
  }

  private async termsOf(
    metadata: AuthorizationServerMetadata,
    resource: string,
    scopes: string[] | undefined,
  ): Promise<OAuthTerms> {
    const {
      issuer,
      registration_endpoint: registration,
      code_challenge_methods_supported: challenges,
    } = metadata;
    if (challenges && !challenges.includes('S256'))
      throw new OAuthFailure('unusable', `${oneLine(issuer)} does not take code challenges with S256 (PKCE)`);
    const revocation = 'revocation_endpoint' in metadata ? metadata.revocation_endpoint : undefined;
    const endpoints = {
      authorization_endpoint: metadata.authorization_endpoint,
      token_endpoint: metadata.token_endpoint,
      ...(registration !== undefined && { registration_endpoint: registration }),
      ...(typeof revocation === 'string' && { revocation_endpoint: revocation }),
    };
    for (const [name, url] of Object.entries(endpoints)) {
      assertSafe(name, url);
      // People are sent there, too.
      await this.reach(new URL(url));
    }
    const {
      authorization_response_iss_parameter_supported: saysIssuer,
      client_id_metadata_document_supported: takesClientUrls,
    } = metadata as Record<string, unknown>;
    return {
      issuer,
      authorizationEndpoint: metadata.authorization_endpoint,
      tokenEndpoint: metadata.token_endpoint,
      ...(registration !== undefined && { registrationEndpoint: registration }),
      ...(typeof revocation === 'string' && { revocationEndpoint: revocation }),
      authMethods: metadata.token_endpoint_auth_methods_supported ?? [],
      saysIssuer: saysIssuer === true,
      takesClientUrls: takesClientUrls === true,
      resource,
      ...(scopes && { scopes }),
    };
  }

  /**
   * The metadata of the resource about its sign-in. A resource without metadata is its own authorization server, as in the first
   * revision of MCP that had one.
   */
  private async resourceMetadata(
    resource: string,
    issuer: string | undefined,
  ): Promise<{ servers: string[]; resource: string; scopes?: string[] }> {
    const { discoverOAuthProtectedResourceMetadata } = await sdk();
    const { url: resourceMetadataUrl, scope } = await this.challengeOf(resource);
    let metadata: Awaited<ReturnType<typeof discoverOAuthProtectedResourceMetadata>>;
    try {
      metadata = await this.said(resource, () =>
        discoverOAuthProtectedResourceMetadata(
          resource,
          { ...(resourceMetadataUrl && { resourceMetadataUrl }) },
          this.fetch,
        ),
      );
    } catch (error) {
      // The server has named the address of its metadata, so a failure to read it is an error.
      if (resourceMetadataUrl || (error instanceof OAuthFailure && error.kind === 'unreached')) throw error;
      return { servers: issuer === undefined ? [] : [issuer], resource };
    }
    const { checkResourceAllowed } = await import('@modelcontextprotocol/sdk/shared/auth-utils.js');
    const isOwn =
      URL.parse(metadata.resource) !== null &&
      checkResourceAllowed({ requestedResource: resource, configuredResource: metadata.resource });
    // Otherwise a server could get tokens for another one (RFC 9728, section 3.3).
    if (!isOwn) {
      throw new OAuthFailure(
        'unusable',
        `the metadata of ${originOf(resource)} is for another resource, ${oneLine(metadata.resource)}`,
      );
    }
    const scopes = scope?.split(' ') ?? metadata.scopes_supported;
    return {
      servers: metadata.authorization_servers ?? [],
      resource: metadata.resource,
      ...(scopes && { scopes: scopes.slice(0, 100) }),
    };
  }

  /** What the resource answers to a request without a token (RFC 9728, section 5). */
  private async challengeOf(resource: string): Promise<{ url?: URL; scope?: string }> {
    const { extractWWWAuthenticateParams } = await sdk();
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'ping', params: {} });
    const headers = { 'content-type': 'application/json', accept: 'application/json, text/event-stream' };
    const response = await this.said(resource, () => this.send(resource, { method: 'POST', headers, body }));
    await response.body?.cancel();
    if (response.status !== 401) return {};
    const { resourceMetadataUrl, scope } = extractWWWAuthenticateParams(response);
    return {
      ...(resourceMetadataUrl && { url: resourceMetadataUrl }),
      ...(scope !== undefined && { scope }),
    };
  }

  /** Registers Baton (RFC 7591). */
  async register(terms: OAuthTerms, redirectUri: string, scope: string | undefined): Promise<OAuthClientId> {
    const { registerClient } = await sdk();
    if (terms.registrationEndpoint === undefined) {
      throw new OAuthFailure(
        'unusable',
        `${oneLine(terms.issuer)} registers no clients by itself: register Baton there, with the redirect URI ${redirectUri}, and set ` +
          'clientId in the settings of the agent',
      );
    }
    const hasPublic = terms.authMethods.length === 0 || terms.authMethods.includes('none');
    const registered = await this.said(terms.issuer, () =>
      registerClient(terms.issuer, {
        metadata: metadataOf(terms),
        clientMetadata: clientMetadata(
          redirectUri,
          hasPublic ? 'none' : (terms.authMethods[0] ?? 'client_secret_basic'),
        ),
        ...(scope !== undefined && { scope }),
        fetchFn: this.fetch,
      }),
    );
    const { client_id, client_secret, token_endpoint_auth_method } = registered;
    return {
      client_id: bounded(client_id),
      ...(client_secret !== undefined && { client_secret: bounded(client_secret) }),
      ...(token_endpoint_auth_method !== undefined && { token_endpoint_auth_method }),
    };
  }

  /** The address where a person consents, and the verifier of its code challenge (PKCE, RFC 7636). */
  async authorize(
    terms: OAuthTerms,
    client: OAuthClientId,
    { redirectUri, scope, state }: { redirectUri: string; scope: string | undefined; state: string },
  ): Promise<{ url: string; verifier: string }> {
    const { startAuthorization } = await sdk();
    const { authorizationUrl, codeVerifier } = await startAuthorization(terms.issuer, {
      metadata: metadataOf(terms),
      clientInformation: client,
      redirectUrl: redirectUri,
      state,
      ...(scope !== undefined && { scope }),
      resource: terms.resource,
    });
    return { url: authorizationUrl.href, verifier: codeVerifier };
  }

  async exchange(
    terms: OAuthTerms,
    client: OAuthClientId,
    { code, verifier, redirectUri }: { code: string; verifier: string; redirectUri: string },
  ): Promise<TokenSet> {
    const { exchangeAuthorization } = await sdk();
    const tokens = await this.said(terms.issuer, () =>
      exchangeAuthorization(terms.issuer, {
        metadata: metadataOf(terms),
        clientInformation: client,
        authorizationCode: code,
        codeVerifier: verifier,
        redirectUri,
        resource: terms.resource,
        fetchFn: this.fetch,
      }),
    );
    return tokensOf(tokens);
  }

  /**
   * Exchanges the token of a caller for one with which Baton calls the resource for it (RFC 8693). Baton is the actor: it proves who it is as the
   * client.
   * @param subject goes to the token endpoint alone. No error has it
   */
  async exchangeSubject(
    terms: OAuthTerms,
    client: OAuthClientId,
    {
      subject,
      audience,
      scope,
    }: { subject: string; audience: string | undefined; scope: string | undefined },
  ): Promise<TokenSet> {
    const { parseErrorResponse } = await sdk();
    const { OAuthTokensSchema } = await import('@modelcontextprotocol/sdk/shared/auth.js');
    const body = new URLSearchParams({
      grant_type: TOKEN_EXCHANGE,
      subject_token: subject,
      subject_token_type: ACCESS_TOKEN,
      requested_token_type: ACCESS_TOKEN,
      resource: terms.resource,
      ...(audience !== undefined && { audience }),
      ...(scope !== undefined && { scope }),
    });
    return this.said(terms.issuer, async () => {
      const headers = await authenticated(terms, client, body);
      const response = await this.fetch(terms.tokenEndpoint, { method: 'POST', headers, body });
      const text = await response.text();
      if (!response.ok) {
        const refused = await parseErrorResponse(text);
        refused.message = refused.message.replaceAll(subject, '[removed]');
        throw refused;
      }
      // oxlint-disable-next-line no-restricted-properties -- the schema checks it
      const answer = JSON.parse(text) as { issued_token_type?: unknown };
      const { token_type, ...given } = OAuthTokensSchema.parse(answer);
      const tokens = tokensOf({ ...given, token_type: token_type.replaceAll(subject, '[removed]') });
      const { issued_token_type: type } = answer;
      const { issuer } = terms;
      if (type !== ACCESS_TOKEN && type !== JWT)
        throw new OAuthFailure('unusable', `${oneLine(issuer)} exchanges the token for one of another type`);
      // Otherwise the resource would get the token of the caller.
      if (tokens.access.includes(subject) || tokens.refresh?.includes(subject))
        throw new OAuthFailure('unusable', `${oneLine(issuer)} answers with the token that it was sent`);
      return tokens;
    });
  }

  async refresh(terms: OAuthTerms, client: OAuthClientId, refreshToken: string): Promise<TokenSet> {
    const { refreshAuthorization } = await sdk();
    const tokens = await this.said(terms.issuer, () =>
      refreshAuthorization(terms.issuer, {
        metadata: metadataOf(terms),
        clientInformation: client,
        refreshToken,
        resource: terms.resource,
        fetchFn: this.fetch,
      }),
    );
    return tokensOf(tokens);
  }

  /** Revokes a token at the authorization server (RFC 7009). Never rejects. */
  async revoke(
    { revocationEndpoint, authMethods }: OAuthTerms,
    client: OAuthClientId,
    { token, hint }: { token: string; hint: 'access_token' | 'refresh_token' },
  ): Promise<boolean> {
    if (revocationEndpoint === undefined) return false;
    const body = new URLSearchParams({ token, token_type_hint: hint });
    const headers = await authenticated({ authMethods }, client, body);
    try {
      return (await this.fetch(revocationEndpoint, { method: 'POST', headers, body })).ok;
    } catch {
      return false;
    }
  }

  private async reach(url: URL): Promise<void> {
    await this.said(url.href, () => this.isReachable(url));
  }

  private readonly send = async (url: string | URL, init?: RequestInit): Promise<Response> => {
    const limits = { maxBytes: MAX_BYTES, timeoutMs: TIMEOUT_MS, json: true, limit: 'oauthAnswer' };
    return this.outbound.fetchWithin(limits)(url, { ...init, redirect: 'manual' });
  };

  /** For the SDK, which checks for a `Response` of this process. The whole answer is read within the bounds. */
  private readonly fetch = async (url: string | URL, init?: RequestInit): Promise<Response> => {
    assertSafe('address', String(url));
    const { body, headers, ...others } = init ?? {};
    // undici has a class of its own for forms.
    const sent = body instanceof URLSearchParams ? body.toString() : body;
    const response = await this.send(url, {
      ...others,
      headers: [...new Headers(headers)],
      ...(sent !== undefined && sent !== null && { body: sent }),
    }).catch((cause: unknown) => {
      // The SDK takes a TypeError for a refusal of a browser, and continues.
      throw new Error('the request failed', { cause });
    });
    const read = response.status === 204 ? null : await response.text();
    return new Response(read, { status: response.status, headers: [...response.headers] });
  };

  /** The errors of a request in words for people. @param url of the server */
  private async said<T>(url: string, request: () => Promise<T>): Promise<T> {
    try {
      return await request();
    } catch (error) {
      if (error instanceof OAuthFailure) throw error;
      const origin = originOf(url);
      const refused = causeOf(error);
      if (refused) throw new OAuthFailure('unusable', refused.message);
      const reason = failureReason(error);
      if (reason !== undefined) throw new OAuthFailure('unreached', `${origin} cannot be reached: ${reason}`);
      const { errorCode } = (error ?? {}) as { errorCode?: unknown };
      if (typeof errorCode === 'string') {
        const reason = oneLine(messageOf(error));
        if (errorCode === 'server_error' || errorCode === 'temporarily_unavailable')
          throw new OAuthFailure('unreached', `${origin} has failed: ${reason}`, errorCode);
        throw new OAuthFailure(
          'refused',
          `${origin} refuses: ${oneLine(errorCode)}${reason === '' ? '' : ` (${reason})`}`,
          errorCode,
        );
      }
      const { name } = error instanceof Error ? error : { name: '' };
      const isOdd = name === 'ZodError' || name === 'SyntaxError';
      throw new OAuthFailure(
        'unusable',
        `${origin} ${isOdd ? 'gives an answer that is not one of OAuth' : `cannot be used: ${oneLine(messageOf(error))}`}`,
      );
    }
  }
}

/** Proves to a token endpoint who Baton is: in the headers, or in the form. */
async function authenticated(
  { authMethods }: Pick<OAuthTerms, 'authMethods'>,
  client: OAuthClientId,
  body: URLSearchParams,
): Promise<Headers> {
  const { selectClientAuthMethod } = await sdk();
  const headers = new Headers({ 'content-type': 'application/x-www-form-urlencoded' });
  const method = selectClientAuthMethod(client, authMethods);
  if (method === 'client_secret_basic') {
    headers.set('authorization', `Basic ${btoa(`${client.client_id}:${client.client_secret ?? ''}`)}`);
  } else {
    body.set('client_id', client.client_id);
    if (method === 'client_secret_post') body.set('client_secret', client.client_secret ?? '');
  }
  return headers;
}

/** Throws OAuthFailure unless an address is https, or http on this machine. */
function assertSafe(name: string, url: string): void {
  const parsed = url.length <= MAX_TEXT ? URL.parse(url) : null;
  const isSafe =
    parsed &&
    parsed.username === '' &&
    parsed.password === '' &&
    (parsed.protocol === 'https:' || (parsed.protocol === 'http:' && LOOPBACK.test(parsed.hostname)));
  if (!isSafe)
    throw new OAuthFailure(
      'unusable',
      `the ${name} of the authorization server, ${oneLine(url)}, is not an https URL`,
    );
}

const LOOPBACK = /^(localhost|127(\.\d{1,3}){3}|\[::1\])$/;

function metadataOf(terms: OAuthTerms): AuthorizationServerMetadata {
  return {
    issuer: terms.issuer,
    authorization_endpoint: terms.authorizationEndpoint,
    token_endpoint: terms.tokenEndpoint,
    ...(terms.registrationEndpoint !== undefined && { registration_endpoint: terms.registrationEndpoint }),
    token_endpoint_auth_methods_supported: terms.authMethods,
    response_types_supported: ['code'],
    code_challenge_methods_supported: ['S256'],
  };
}

function tokensOf({ access_token, token_type, refresh_token, scope, expires_in }: OAuthTokens): TokenSet {
  if (token_type.toLowerCase() !== 'bearer')
    throw new OAuthFailure(
      'unusable',
      `the authorization server gives tokens of the type ${oneLine(token_type)}`,
    );
  const seconds = Number(expires_in);
  // A header has it.
  if (!/^[\x21-\x7e]+$/.test(access_token))
    throw new OAuthFailure('unusable', 'the authorization server gives a token that no header can have');
  return {
    access: bounded(access_token),
    ...(refresh_token !== undefined && { refresh: bounded(refresh_token) }),
    ...(scope !== undefined && { scope: bounded(scope) }),
    ...(expires_in !== undefined && seconds >= 0 && seconds < 1e9 && { expiresIn: seconds }),
  };
}

function bounded(text: string): string {
  if (text.length <= MAX_TEXT) return text;
  throw new OAuthFailure(
    'unusable',
    `the authorization server gives a value of more than ${MAX_TEXT} characters`,
  );
}

function causeOf(error: unknown): OutboundRefused | undefined {
  for (let cause = error; cause instanceof Error; cause = cause.cause)
    if (cause instanceof OutboundRefused) return cause;
  return undefined;
}

const originOf = (url: string): string => URL.parse(url)?.origin ?? oneLine(url);
export const withoutSlash = (url: string): string => (url.endsWith('/') ? url.slice(0, -1) : url);
