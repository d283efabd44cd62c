import { type JWK, exportJWK, generateKeyPair } from 'jose';
import { createHash, randomBytes } from 'node:crypto';
import { type RequestListener, type Server, createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Configuration } from 'oidc-provider';
import { freePort } from './ports.js';
import { KEEPS_CONNECTIONS } from './server-options.js';

/** What its users ask for access to: `resource` (RFC 8707). */
export const RESOURCE = 'urn:test:baton';
const CALLBACK = 'http://127.0.0.1/done';
/** Where it leads back to the console. A native application may listen at any port of loopback. */
const CONSOLE = 'http://localhost/console/signed-in';
const MAX_STEPS = 12;
const ALG = 'ES256';

/** What the next tokens are like. */
export interface TokenTerms {
  audience: string;
  /** How long they are good. They outlast a run of tests on a busy machine. */
  seconds: number;
  /** More claims of each token, by the name of its user or machine. */
  claims: Record<string, Record<string, unknown>>;
}

/**
 * A real OpenID provider (`oidc-provider`) on loopback. Its users sign in with the authorization code flow and PKCE, as in a
 * browser; its machine with its client credentials. Both get access tokens that are JWTs.
 */
export class OpenIdProvider {
  readonly terms: TokenTerms = { audience: 'baton', seconds: 3600, claims: {} };
  /** Paths that were asked for. */
  readonly asked: string[] = [];
  private keys: JWK[] = [];
  private handler: ((...exchange: Parameters<RequestListener>) => unknown) | undefined;
  private server: Server | undefined;
  private port = 0;

  static async start(): Promise<OpenIdProvider> {
    leaveOutWarnings();
    const provider = new OpenIdProvider();
    await provider.listen();
    await provider.rotate();
    return provider;
  }

  /** Its name, as in the claim `iss`. */
  get url(): string {
    return `http://127.0.0.1:${String(this.port)}`;
  }

  /** Listens, again at the port that it had. */
  async listen(): Promise<void> {
    const server = createServer(KEEPS_CONNECTIONS, (request, response) => {
      this.asked.push(request.url ?? '');
      this.handler?.(request, response);
    });
    const port = this.port || (await freePort());
    await new Promise<void>((resolve) => server.listen(port, '127.0.0.1', resolve));
    this.server = server;
    this.port = (server.address() as AddressInfo).port;
  }

  async stop(): Promise<void> {
    this.server?.closeAllConnections();
    await new Promise((resolve) => this.server?.close(resolve));
  }

  /** Accepts requests and never answers. */
  hang(): void {
    this.handler = () => undefined;
  }

  /** Signs with a new key from now on. @param keep whether the keys of before stay good */
  async rotate(keep = true): Promise<void> {
    const { privateKey } = await generateKeyPair(ALG, { extractable: true });
    const key = {
      ...(await exportJWK(privateKey)),
      kid: randomBytes(8).toString('hex'),
      alg: ALG,
      use: 'sig',
    };
    this.keys = [key, ...(keep ? this.keys : [])];
    const { Provider } = await import('oidc-provider');
    this.handler = new Provider(this.url, this.configuration()).callback();
  }

  /** An access token of its machine. */
  machineToken(): Promise<string> {
    const authorization = `Basic ${Buffer.from('machine:machine-secret').toString('base64')}`;
    return this.token({ grant_type: 'client_credentials' }, { authorization });
  }

  /** Signs a user in. @returns its access token */
  async userToken(name: string): Promise<string> {
    const verifier = randomBytes(32).toString('base64url');
    const code = await this.signIn(name, {
      client_id: 'app',
      response_type: 'code',
      scope: 'openid',
      redirect_uri: CALLBACK,
      code_challenge: createHash('sha256').update(verifier).digest('base64url'),
      code_challenge_method: 'S256',
      resource: RESOURCE,
    });
    return this.token({
      grant_type: 'authorization_code',
      client_id: 'app',
      redirect_uri: CALLBACK,
      code,
      code_verifier: verifier,
    });
  }

  /** Goes through the pages of the provider as a browser does. @returns the authorization code */
  private async signIn(name: string, request: Record<string, string>): Promise<string> {
    const forms: Record<string, string>[] = [
      { prompt: 'login', login: name, password: 'any' },
      { prompt: 'consent' },
    ];
    const cookies = new Map<string, string>();
    let next = new URL(`/auth?${new URLSearchParams(request).toString()}`, this.url);
    for (let step = 0; step < MAX_STEPS; step++) {
      const form = next.pathname.startsWith('/interaction/') ? forms.shift() : undefined;
      const cookie = [...cookies].map(([key, value]) => `${key}=${value}`).join('; ');
      const answer = await fetch(next, {
        redirect: 'manual',
        headers: { cookie },
        ...(form && { method: 'POST', body: new URLSearchParams(form) }),
      });
      for (const set of answer.headers.getSetCookie()) {
        const [, key = '', value = ''] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
        cookies.set(key, value);
      }
      const location = answer.headers.get('location');
      if (location === null) throw new Error(`${next.href} answers ${await answer.text()}`);
      next = new URL(location, this.url);
      const code = next.href.startsWith(CALLBACK) && next.searchParams.get('code');
      if (typeof code === 'string') return code;
    }
    throw new Error(`${name} is not signed in after ${String(MAX_STEPS)} pages`);
  }

  private async token(form: Record<string, string>, headers: Record<string, string> = {}): Promise<string> {
    const body = new URLSearchParams({ ...form, resource: RESOURCE });
    const answer = await fetch(`${this.url}/token`, { method: 'POST', headers, body });
    const json = (await answer.json()) as { access_token?: string };
    if (json.access_token === undefined) throw new Error(JSON.stringify(json));
    return json.access_token;
  }

  private configuration(): Configuration {
    return {
      jwks: { keys: this.keys },
      cookies: { keys: ['test'] },
      clientDefaults: { id_token_signed_response_alg: ALG },
      clients: [
        {
          client_id: 'app',
          application_type: 'native',
          token_endpoint_auth_method: 'none',
          redirect_uris: [CALLBACK, CONSOLE],
        },
        {
          client_id: 'machine',
          client_secret: 'machine-secret',
          grant_types: ['client_credentials'],
          redirect_uris: [],
          response_types: [],
        },
      ],
      // The console is at another origin, and asks for the token by a script.
      clientBasedCORS: () => true,
      findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
      extraTokenClaims: (_, token) =>
        this.terms.claims['accountId' in token ? token.accountId : (token.clientId ?? '')],
      features: {
        clientCredentials: { enabled: true },
        resourceIndicators: {
          enabled: true,
          useGrantedResource: () => true,
          getResourceServerInfo: () => ({
            scope: '',
            audience: this.terms.audience,
            accessTokenTTL: this.terms.seconds,
            accessTokenFormat: 'jwt',
            jwt: { sign: { alg: ALG } },
          }),
        },
      },
    };
  }
}

/** Leaves out what `oidc-provider` warns of, such as that its data is in memory. */
function leaveOutWarnings(): void {
  for (const level of ['info', 'warn'] as const) {
    const print = console[level].bind(console);
    console[level] = (...args: unknown[]) => {
      if (!String(args[0]).startsWith('oidc-provider ')) print(...args);
    };
  }
}
