import { isUuid, type OAuthSettings, oauthResource, oauthSettings } from '@baton/a2a';
import {
  type Actor,
  oauthClientSecretName,
  type OAuthConnectionKey,
  type OAuthSignIn,
  OAuthSignInStore,
} from '@baton/database';
import { Injectable } from '@nestjs/common';
import { createHash, randomBytes } from 'node:crypto';
import { v7 as uuid } from 'uuid';
import type { AuthorizationServer, OAuthClientId, OAuthTerms } from './authorization-server.js';
import { clientUrlOf } from './client-metadata.js';
import { OAuthConnections } from './oauth-connections.js';
import { OAuthFailure } from './oauth-failure.js';
import { oneLine } from './one-line.js';

/** Lifetime of a link that an administrator has asked for. */
const LINK_MS = 15 * 60_000;
/** 256 random bits cannot be guessed. */
const TICKET_BYTES = 32;
const SEPARATOR = '.';

/** How long a task waits for its caller. */
const TASK_MS = 24 * 60 * 60_000;

/** Where the link of a sign-in leads, below PUBLIC_URL. */
export const SIGN_IN_PATH = '/oauth/sign-in';

/** The link of a sign-in. @param publicUrl without a slash at its end */
export const signInUrl = (publicUrl: string, ticket: string): string =>
  `${publicUrl}${SIGN_IN_PATH}?ticket=${ticket}`;

/** A task that waits for its caller to sign in. */
interface WaitingSignIn {
  tenantId: string;
  /** Key of the caller. */
  caller: string;
  taskId: string;
  /** Slug of its agent. */
  agent: string;
}

/** A sign-in to begin. */
export interface WantedSignIn extends Omit<OAuthConnectionKey, 'resource'> {
  /** URL of the server in the settings of the agent. */
  url: string;
  settings: OAuthSettings;
  /** Slug of the agent. */
  agent: string;
  createdBy: string;
}

/** What the link of a sign-in has, and the end of its time. */
export interface SignInLinkTicket {
  ticket: string;
  expiresAt: Date;
}

/** Facts of a sign-in for the person who opens its link. */
export interface SignInFacts {
  id: string;
  agent: string;
  resource: string;
  caller: string | null;
}

/** An answer of an authorization server, by way of a browser. */
export interface SignInAnswer {
  state?: string | undefined;
  code?: string | undefined;
  iss?: string | undefined;
  error?: string | undefined;
  error_description?: string | undefined;
}

interface StoredTerms {
  terms: OAuthTerms;
  client: OAuthClientId;
  clientSecret?: string | undefined;
  redirectUri: string;
  /** What is asked for. */
  scopes?: string[] | undefined;
}

/**
 * Sign-ins at servers that agents call (OAuth 2.1, authorization code with PKCE). A link of Baton begins it, so that the same
 * browser returns: the browser keeps the verifier of the code challenge in a cookie, Baton its hash.
 */
@Injectable()
export class OAuthSignIns {
  constructor(
    private readonly store: OAuthSignInStore,
    private readonly connections: OAuthConnections,
  ) {}

  /** Begins a sign-in. @returns what stands in its link */
  async begin(
    { tenantId, caller, url, settings, agent, createdBy }: WantedSignIn,
    by: Actor,
  ): Promise<SignInLinkTicket> {
    const id = uuid();
    const secret = randomBytes(TICKET_BYTES).toString('base64url');
    const resource = oauthResource(url);
    const wanted = { tenantId, id, resource, caller, agent, settings, taskId: null, createdBy };
    const { expiresAt } = await this.store.create({ ...wanted, ticket: hash(secret), ttlMs: LINK_MS }, by);
    return { ticket: [tenantId, id, secret].join(SEPARATOR), expiresAt };
  }

  /**
   * Begins the sign-in of the caller of a task. The task is woken when the caller is signed in.
   * @param wanted the server, or a child task that waits for the same
   * @returns undefined: the caller has let the time of an earlier link pass, or the child no longer waits
   */
  async beginForTask(
    { tenantId, caller, taskId, agent }: WaitingSignIn,
    wanted: Pick<WantedSignIn, 'url' | 'settings'> | { childTaskId: string },
  ): Promise<{ ticket: string; forMs: number } | undefined> {
    const found =
      'childTaskId' in wanted
        ? await this.store.ofTask(tenantId, wanted.childTaskId)
        : { resource: oauthResource(wanted.url), settings: wanted.settings, agent };
    if (!found) return undefined;
    const id = uuid();
    const secret = randomBytes(TICKET_BYTES).toString('base64url');
    const signIn = { ...found, tenantId, id, caller, taskId, createdBy: caller };
    const made = await this.store.createForTask(
      { ...signIn, ticket: hash(secret), ttlMs: TASK_MS },
      { kind: kindOf(caller), key: caller },
    );
    return made && { ticket: [tenantId, id, secret].join(SEPARATOR), forMs: TASK_MS };
  }

  /** The sign-in of a link. Undefined: it is over, or there never was one. */
  async find(ticket: string | undefined): Promise<SignInFacts | undefined> {
    const named = parse(ticket);
    return named && (await this.store.find(named.tenantId, named.id, hash(named.secret)));
  }

  /**
   * Finds the authorization server, and what is to be asked there.
   * @param before what the browser has kept, if it has opened the link before
   * @returns the address to send the browser to, and what it must keep
   * @throws OAuthFailure
   */
  async open(
    ticket: string | undefined,
    before: string | undefined,
    redirectUri: string,
  ): Promise<{ id: string; url: string; kept: string } | undefined> {
    const named = parse(ticket);
    const signIn = named && (await this.store.find(named.tenantId, named.id, hash(named.secret)));
    if (!named || !signIn) return undefined;
    const { tenantId, id, resource } = signIn;
    const settings = oauthSettings.parse(signIn.settings);
    const server = this.connections.serverFor(tenantId);
    const terms = await server.discover(resource, settings.issuer);
    const scopes = settings.scopes ?? terms.scopes;
    const scope = scopes?.join(' ');
    const { client, clientSecret } = await this.clientFor(tenantId, settings, {
      server,
      terms,
      redirectUri,
      scope,
    });
    const stateSecret = randomBytes(TICKET_BYTES).toString('base64url');
    const state = [tenantId, id, stateSecret].join(SEPARATOR);
    const { url, verifier } = await server.authorize(terms, client, { redirectUri, scope, state });
    // The secret of a registered client is stored encrypted, and read again.
    const { client_secret: _, ...shown } = client;
    const stored: StoredTerms = { terms, client: shown, clientSecret, redirectUri, scopes };
    const proof = { state: hash(stateSecret), browser: hash(verifier) };
    const isFirst = await this.store.open(
      { tenantId, id, ticket: hash(named.secret) },
      before === undefined ? undefined : hash(before),
      proof,
      stored,
    );
    if (!isFirst)
      throw new OAuthFailure('refused', 'another browser has opened this link: ask for a new one');
    return { id, url, kept: verifier };
  }

  /** The id of the sign-in that an answer is about, which names the cookie of its browser. */
  idOf(state: string | undefined): string | undefined {
    return parse(state)?.id;
  }

  /**
   * Takes the answer of an authorization server, once, and stores the tokens.
   * @param kept what the browser has kept
   * @throws OAuthFailure
   */
  async finish(
    answer: SignInAnswer,
    kept: string | undefined,
    by: Omit<Actor, 'kind' | 'key'>,
  ): Promise<SignInFacts> {
    const named = parse(answer.state);
    const signIn =
      named && kept !== undefined
        ? await this.store.take(named.tenantId, named.id, { state: hash(named.secret), browser: hash(kept) })
        : undefined;
    if (!signIn || kept === undefined) {
      throw new OAuthFailure(
        'refused',
        'this sign-in is over, was used before, or was begun in another browser: ask for a new link',
      );
    }
    const stored = signIn.terms as StoredTerms;
    const { terms } = stored;
    // The answer is from another authorization server (RFC 9207).
    if (answer.iss === undefined ? terms.saysIssuer : answer.iss !== terms.issuer)
      throw new OAuthFailure(
        'refused',
        'the answer does not come from the authorization server that was asked',
      );
    if (answer.error !== undefined) throw new OAuthFailure('refused', refusalOf(answer));
    if (answer.code === undefined)
      throw new OAuthFailure('refused', 'the answer of the authorization server has no code');
    await this.connect(signIn, stored, { code: answer.code, verifier: kept }, by);
    return signIn;
  }

  private async connect(
    signIn: OAuthSignIn,
    { terms, clientSecret, redirectUri, scopes, ...stored }: StoredTerms,
    proof: { code: string; verifier: string },
    by: Omit<Actor, 'kind' | 'key'>,
  ): Promise<void> {
    const { tenantId, id, createdBy } = signIn;
    const registered = await this.connections.storedClient(tenantId, terms.issuer);
    const isRegistered = registered?.client.client_id === stored.client.client_id;
    const client = isRegistered ? registered.client : stored.client;
    const server = this.connections.serverFor(tenantId);
    const withSecret = await this.connections.withSecret(tenantId, { client, clientSecret, terms });
    const tokens = await server.exchange(terms, withSecret, { ...proof, redirectUri });
    const { access, refresh } = tokens;
    const content = {
      tokens: { access, ...(refresh !== undefined && { refresh }) },
      scopes,
      terms,
      client,
      clientSecret,
    };
    const sealed = this.connections.seal(tenantId, id, content, tokens);
    const actor: Actor = { ...by, kind: kindOf(createdBy), key: createdBy };
    await this.store.finish(signIn, terms.issuer, sealed, actor);
  }

  /** The client of the settings, the document of Baton, or a client that the authorization server registers once for the tenant. */
  private async clientFor(
    tenantId: string,
    { clientId, clientSecret }: OAuthSettings,
    {
      server,
      terms,
      redirectUri,
      scope,
    }: { server: AuthorizationServer; terms: OAuthTerms; redirectUri: string; scope: string | undefined },
  ): Promise<Pick<StoredTerms, 'client' | 'clientSecret'>> {
    if (clientId !== undefined) return { client: { client_id: clientId }, clientSecret };
    const clientUrl = terms.takesClientUrls ? clientUrlOf(redirectUri) : undefined;
    if (clientUrl !== undefined)
      return { client: { client_id: clientUrl, token_endpoint_auth_method: 'none' } };
    const { issuer } = terms;
    const known = await this.connections.storedClient(tenantId, issuer);
    if (known?.redirectUri === redirectUri) return { client: known.client };
    const client = await server.register(terms, redirectUri, scope);
    const sealed = this.connections.sealValue(
      tenantId,
      oauthClientSecretName(issuer),
      JSON.stringify(client),
    );
    await this.store.putClient(tenantId, issuer, { ...sealed, redirectUri });
    // Another process may have been first.
    return { client: (await this.connections.storedClient(tenantId, issuer))?.client ?? client };
  }
}

function refusalOf({ error = '', error_description: description }: SignInAnswer): string {
  if (error === 'access_denied') return 'the sign-in was refused at the authorization server';
  return `the authorization server answers with ${oneLine(error)}${description === undefined ? '' : ` (${oneLine(description)})`}`;
}

/** A link and a `state` name tenant and sign-in, and have a secret. */
function parse(text: string | undefined): { tenantId: string; id: string; secret: string } | undefined {
  const [tenantId = '', id = '', secret = '', ...more] = text?.split(SEPARATOR) ?? [];
  if (!isUuid(tenantId) || !isUuid(id) || secret === '' || secret.length > 100 || more.length > 0)
    return undefined;
  return { tenantId, id, secret };
}

const hash = (text: string): Buffer => createHash('sha256').update(text).digest();

/** The kind of a principal by its key. */
function kindOf(key: string): Actor['kind'] {
  const [kind = ''] = key.split(':');
  return kind === 'token' || kind === 'user' || kind === 'schedule' ? kind : 'unknown';
}
