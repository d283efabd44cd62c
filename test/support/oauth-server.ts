import { createHash, randomBytes, randomUUID } from 'node:crypto';
import { EventEmitter, once } from 'node:events';
import { exportJWK, generateKeyPair, jwtVerify, SignJWT } from 'jose';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { passOn } from './pass-on.js';
import { KEEPS_CONNECTIONS } from './server-options.js';

interface Grant {
  family: string;
  clientId: string;
  resource: string | null;
  scope: string | null;
  /** Of a token that came for another one (RFC 8693): the user, and who acts for it. */
  sub?: string;
  act?: { sub: string };
}

type Answer = {
  status?: number;
  json?: unknown;
  headers?: http.OutgoingHttpHeaders;
  stream?: (response: http.ServerResponse) => void;
};

const secret = (): string => randomBytes(16).toString('base64url');

/**
 * A real authorization server (OAuth 2.1) on loopback with a resource behind it. It rotates refresh tokens, and revokes all tokens of a
 * sign-in when a refresh token is used twice. Its authorization endpoint grants each request at once. It is an OpenID provider
 * with users, too, whose tokens it exchanges (RFC 8693).
 */
export class TestOAuthServer {
  /** Lifetime of access tokens, in seconds. */
  lifetime: number | undefined = 3600;
  /** The issuer in its authorization responses (RFC 9207). Undefined: its own. Null: none. */
  iss: string | null | undefined;
  /** Members of its metadata in place of its own. */
  metadata: Record<string, unknown> = {};
  /** Members of the metadata of the resource in place of its own. */
  resourceMetadata: Record<string, unknown> = {};
  /** Answers in place of its own, by path. */
  readonly answers = new Map<string, () => Answer>();
  /** Called before it answers a refresh. */
  beforeRefresh: () => Promise<void> = () => Promise.resolve();
  /** The scope that the resource requires for a request. Undefined: it accepts every token. */
  wants: (body: string) => string | undefined = () => undefined;
  /** What it grants of the scopes that are asked for. */
  grants: (scope: string) => string = (scope) => scope;
  /** Whether an exchange gives a refresh token. */
  givesRefreshAtExchange = true;
  /** Clients that may exchange the tokens of its users, with their secrets. */
  readonly exchangers = new Map<string, string>();
  refreshes = 0;
  readonly exchanges: URLSearchParams[] = [];
  readonly registrations: Record<string, unknown>[] = [];
  readonly authorizations: URLSearchParams[] = [];
  readonly tokenRequests: URLSearchParams[] = [];
  readonly revoked: string[] = [];
  /** Sign-ins whose tokens were revoked, because a refresh token was used twice. */
  readonly thefts: string[] = [];
  /** Valid access tokens, and all that were issued. */
  readonly access = new Map<string, Grant>();
  readonly given: string[] = [];
  /** Bearer tokens of requests that have reached the resource. */
  readonly used: string[] = [];
  private readonly codes = new Map<string, Grant & { challenge: string; redirectUri: string }>();
  private readonly refresh = new Map<string, Grant & { isUsed: boolean }>();
  private readonly keys = generateKeyPair('ES256', { extractable: true });
  private readonly events = new EventEmitter();
  private readonly listener: http.Server;
  private port = 0;

  /** @param target URL of the server behind it. Unset: the resource answers `{}` */
  private constructor(private readonly target: string | undefined) {
    this.listener = http.createServer(KEEPS_CONNECTIONS, (request, response) => {
      this.answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
  }

  static async start(target?: string): Promise<TestOAuthServer> {
    const server = new TestOAuthServer(target);
    server.listener.listen(0, '127.0.0.1');
    await once(server.listener, 'listening');
    server.port = (server.listener.address() as AddressInfo).port;
    return server;
  }

  async stop(): Promise<void> {
    const closed = new Promise((resolve) => this.listener.close(resolve));
    this.listener.closeAllConnections();
    await closed;
  }

  get url(): string {
    return `http://127.0.0.1:${this.port}`;
  }

  /** URL of the resource. */
  get resource(): string {
    return `${this.url}/mcp`;
  }

  get issuer(): string {
    return `${this.url}/as`;
  }

  /** An access token of one of its users, for Baton. */
  async userToken(sub: string, seconds = 3600): Promise<string> {
    const { privateKey } = await this.keys;
    const now = Math.floor(Date.now() / 1000);
    return new SignJWT({
      iss: this.issuer,
      aud: 'baton',
      sub,
      iat: now,
      exp: now + seconds,
      jti: randomUUID(),
    })
      .setProtectedHeader({ alg: 'ES256', kid: 'k1', typ: 'at+jwt' })
      .sign(privateKey);
  }

  /** Every access token is refused from now on. */
  expireAccess(): void {
    this.access.clear();
  }

  /** Every refresh token is refused from now on. */
  expireRefresh(): void {
    this.refresh.clear();
  }

  async until(met: () => boolean): Promise<void> {
    while (!met()) await once(this.events, 'request');
  }

  private async answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const url = new URL(request.url ?? '/', this.url);
    const chunks: Buffer[] = [];
    for await (const chunk of request) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    const own = this.answers.get(url.pathname);
    if (own) send(response, own());
    else if (url.pathname === '/mcp') await this.serve(request, response, body);
    else send(response, await this.answerOf(url, body, request));
    this.events.emit('request');
  }

  private async answerOf(url: URL, body: Buffer, request: http.IncomingMessage): Promise<Answer> {
    const { issuer } = this;
    switch (url.pathname) {
      case '/.well-known/oauth-protected-resource/mcp':
        return {
          json: {
            resource: this.resource,
            authorization_servers: [issuer],
            scopes_supported: ['tools'],
            ...this.resourceMetadata,
          },
        };
      case '/.well-known/oauth-authorization-server/as':
        return {
          json: {
            issuer,
            authorization_endpoint: `${issuer}/authorize`,
            token_endpoint: `${issuer}/token`,
            registration_endpoint: `${issuer}/register`,
            revocation_endpoint: `${issuer}/revoke`,
            response_types_supported: ['code'],
            code_challenge_methods_supported: ['S256'],
            token_endpoint_auth_methods_supported: ['none', 'client_secret_basic'],
            ...(this.iss !== null && { authorization_response_iss_parameter_supported: true }),
            ...this.metadata,
          },
        };
      case '/as/.well-known/openid-configuration':
        return { json: { issuer, jwks_uri: `${issuer}/jwks` } };
      case '/as/jwks': {
        const jwk = await exportJWK((await this.keys).publicKey);
        return { json: { keys: [{ ...jwk, kid: 'k1', alg: 'ES256', use: 'sig' }] } };
      }
      case '/as/register': {
        const asked = JSON.parse(body.toString()) as Record<string, unknown>;
        this.registrations.push(asked);
        return { status: 201, json: { ...asked, client_id: `client-${this.registrations.length}` } };
      }
      case '/as/authorize':
        return this.consent(url.searchParams);
      case '/as/token':
        return this.token(new URLSearchParams(body.toString()), request.headers.authorization);
      case '/as/revoke': {
        const token = new URLSearchParams(body.toString()).get('token') ?? '';
        this.revoked.push(token);
        this.access.delete(token);
        this.refresh.delete(token);
        return { json: {} };
      }
      default:
        return { status: 404, json: {} };
    }
  }

  private consent(asked: URLSearchParams): Answer {
    this.authorizations.push(asked);
    const code = secret();
    const scope = asked.get('scope');
    this.codes.set(code, {
      family: randomUUID(),
      clientId: asked.get('client_id') ?? '',
      resource: asked.get('resource'),
      scope: scope === null ? null : this.grants(scope),
      challenge: asked.get('code_challenge') ?? '',
      redirectUri: asked.get('redirect_uri') ?? '',
    });
    const back = new URL(asked.get('redirect_uri') ?? '');
    back.searchParams.set('code', code);
    back.searchParams.set('state', asked.get('state') ?? '');
    if (this.iss !== null) back.searchParams.set('iss', this.iss ?? this.issuer);
    return { status: 302, headers: { location: back.href } };
  }

  private async token(asked: URLSearchParams, authorization: string | undefined): Promise<Answer> {
    this.tokenRequests.push(asked);
    const [basic = '', password = ''] = Buffer.from((authorization ?? '').replace('Basic ', ''), 'base64')
      .toString()
      .split(':');
    const clientId = asked.get('client_id') ?? basic;
    if (asked.get('grant_type') === 'urn:ietf:params:oauth:grant-type:token-exchange') {
      this.exchanges.push(asked);
      if (this.exchangers.get(basic) !== password) return { status: 401, json: { error: 'invalid_client' } };
      return this.exchange(asked, basic);
    }
    if (asked.get('grant_type') === 'authorization_code') {
      const grant = this.codes.get(asked.get('code') ?? '');
      this.codes.delete(asked.get('code') ?? '');
      const challenge = createHash('sha256')
        .update(asked.get('code_verifier') ?? '')
        .digest('base64url');
      const fits =
        grant?.challenge === challenge &&
        grant.redirectUri === asked.get('redirect_uri') &&
        grant.clientId === clientId;
      return grant && fits ? this.issueTokens(grantOf(grant)) : refused;
    }
    this.refreshes += 1;
    await this.beforeRefresh();
    const token = asked.get('refresh_token') ?? '';
    const grant = this.refresh.get(token);
    if (!grant || grant.clientId !== clientId) return refused;
    if (grant.isUsed) {
      this.thefts.push(grant.family);
      for (const tokens of [this.access, this.refresh])
        for (const [each, { family }] of tokens) if (family === grant.family) tokens.delete(each);
      return refused;
    }
    grant.isUsed = true;
    return this.issueTokens(grantOf(grant));
  }

  /** For the token of one of its users: a token of the user for the resource, with the client as the actor. */
  private async exchange(asked: URLSearchParams, clientId: string): Promise<Answer> {
    const { publicKey } = await this.keys;
    const type = 'urn:ietf:params:oauth:token-type:access_token';
    const subject = await jwtVerify(asked.get('subject_token') ?? '', publicKey, {
      issuer: this.issuer,
    }).catch(() => undefined);
    const sub = subject?.payload.sub;
    const fits = asked.get('subject_token_type') === type && asked.get('requested_token_type') === type;
    if (sub === undefined || !fits) return refused;
    if (asked.get('resource') !== this.resource) return { status: 400, json: { error: 'invalid_target' } };
    const scope = asked.get('scope');
    const [family, resource] = [randomUUID(), this.resource];
    const grant = { family, clientId, resource, scope: scope === null ? null : this.grants(scope), sub };
    const { json } = this.issueTokens({ ...grant, act: { sub: clientId } }, this.givesRefreshAtExchange);
    return { json: { ...(json as object), issued_token_type: type } };
  }

  private issueTokens(grant: Grant, isRefreshable = true): Answer {
    const { scope } = grant;
    const [access, refresh] = [secret(), secret()];
    this.access.set(access, grant);
    this.given.push(access);
    if (isRefreshable) this.refresh.set(refresh, { ...grant, isUsed: false });
    return {
      json: {
        access_token: access,
        token_type: 'Bearer',
        ...(isRefreshable && { refresh_token: refresh }),
        ...(this.lifetime !== undefined && { expires_in: this.lifetime }),
        ...(scope !== null && { scope }),
      },
    };
  }

  /** The resource: what is behind it, for those with a good token. */
  private async serve(
    request: http.IncomingMessage,
    response: http.ServerResponse,
    body: Buffer,
  ): Promise<void> {
    const [, token = ''] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '') ?? [];
    if (!this.access.has(token)) {
      const metadata = `${this.url}/.well-known/oauth-protected-resource/mcp`;
      response.writeHead(401, { 'www-authenticate': `Bearer resource_metadata="${metadata}"` }).end();
      return;
    }
    const wanted = this.wants(body.toString());
    if (wanted !== undefined && !this.access.get(token)?.scope?.split(' ').includes(wanted)) {
      const challenge = `Bearer error="insufficient_scope", scope="${wanted}", error_description="more"`;
      response.writeHead(403, { 'www-authenticate': challenge }).end();
      return;
    }
    this.used.push(token);
    if (this.target === undefined) return void send(response, { json: {} });
    passOn(this.target, request, response, body);
  }
}

/** Without what belongs to a code or a refresh token. */
const grantOf = ({ family, clientId, resource, scope, sub, act }: Grant): Grant => ({
  family,
  clientId,
  resource,
  scope,
  ...(sub !== undefined && { sub }),
  ...(act && { act }),
});

const refused: Answer = { status: 400, json: { error: 'invalid_grant', error_description: 'no' } };

function send(response: http.ServerResponse, { status = 200, json, headers, stream }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json', ...headers });
  if (stream) stream(response);
  else response.end(json === undefined ? '' : JSON.stringify(json));
}

/** A browser that keeps cookies and follows no redirect by itself. */
export class TestBrowser {
  private readonly cookies = new Map<string, string>();

  async open(url: string): Promise<{ status: number; text: string; location: string }> {
    const cookie = [...this.cookies].map(([name, value]) => `${name}=${value}`).join('; ');
    const response = await fetch(url, { redirect: 'manual', headers: { cookie, accept: 'text/html' } });
    for (const set of response.headers.getSetCookie()) {
      const [, name = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
      this.cookies.set(name, value);
    }
    return {
      status: response.status,
      text: await response.text(),
      location: response.headers.get('location') ?? '',
    };
  }

  /** Goes from the link of a sign-in to the authorization server. @returns where that sends it: back to Baton */
  async consent(link: string): Promise<string> {
    const { location, text } = await this.open(`${link}&go=1`);
    if (location === '') throw new Error(text);
    return (await this.open(location)).location;
  }

  /** The whole sign-in of a link. */
  async signIn(link: string): Promise<{ status: number; text: string }> {
    return this.open(await this.consent(link));
  }
}
