import { isTraceparent, messageOf } from '@baton/telemetry';
import { type AgentCard, type AgentInterface, isEventStream, isOfCaller, originOf } from '@baton/a2a';
import {
  type Client,
  ClientFactory,
  JsonRpcTransportFactory,
  RestTransportFactory,
  ServiceParameters,
  withA2AExtensions,
  DefaultAgentCardResolver,
} from '@a2a-js/sdk/client';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { type OutboundCalls, OutboundRefused, timeoutSignal } from '@baton/outbound';
import { SignedInFetch } from '../../outbound/signed-in-fetch.js';
import { SignInNeeded } from '../../sign-in-needed.js';
import type { Redactor } from '../../outbound/redactor.js';
import { readSecretHeaders } from '../../outbound/secret-headers.js';
import type { Turn } from '../../agent-runtime.js';
import { type RemoteConfig, cardUrlOf, originsOf } from './remote-config.js';
import { toA2aAnswer } from './remote-answer.js';
import { RemoteFailure, remoteFailure } from './remote-failure.js';

/** A card that has changed is read a minute later. */
const CARD_CACHE_MS = 60_000;
/** Cards that a worker keeps. One has some kilobytes. */
const CARD_CACHE_SIZE = 1_000;

/** A connection to a remote agent for one turn. */
export interface RemoteConnection {
  client: Client;
  /** For error messages. */
  host: string;
  streams: boolean;
  /** URIs of the requested extensions. */
  extensions: readonly string[];
  serviceParameters: ServiceParameters;
  /** Removes the agent's secrets from texts of the remote agent. */
  redactor: Redactor;
  /** Records in the audit log that a message is sent with a sign-in. Does nothing without one. Rejects with a RemoteFailure if the sign-in is missing. */
  note(): Promise<void>;
}

/** Connects to remote agents: reads credentials and cards, and chooses the interface. */
@Injectable()
export class RemoteConnector {
  private readonly cards = new LRUCache<string, AgentCard>({ max: CARD_CACHE_SIZE, ttl: CARD_CACHE_MS });

  /**
   * @param traceparent sent with each request
   * @throws RemoteFailure. A transient one may be retried.
   */
  async connect(
    turn: Turn,
    config: RemoteConfig,
    signal: AbortSignal,
    traceparent = turn.traceparent,
  ): Promise<RemoteConnection> {
    const { host } = cardUrlOf(config);
    const { redactor, headers } = await headersOf(turn, config, traceparent);
    const caller = {
      outbound: turn.outbound,
      headers,
      origins: originsOf(config),
      signedIn: await signIn(turn, config),
    };
    const fetchImpl = remoteFetch(caller);
    const fetchCard = remoteFetch(caller, MAX_CARD_BYTES);
    const card = await this.cardOf(turn, config, fetchCard, signal).catch((error: unknown) => {
      throw remoteFailure(error, host, redactor);
    });
    const legacyCompat = { enabled: true };
    const factory = new ClientFactory({
      transports: [
        new JsonRpcTransportFactory({ fetchImpl, legacyCompat }),
        new RestTransportFactory({ fetchImpl, legacyCompat }),
      ],
      preferredTransports: ['JSONRPC'],
      cardResolver: cardResolver(),
    });
    const client = await factory.createFromAgentCard(card);
    const extensions = extensionsFor(turn, config, card, host);
    const serviceParameters =
      extensions.length > 0 ? ServiceParameters.create(withA2AExtensions(...extensions)) : {};
    const streams = card.capabilities?.streaming ?? false;
    const note = () => noteMessage(caller.signedIn, host, redactor);
    return { client, host, streams, extensions, serviceParameters, redactor, note };
  }

  /** Forgets the cached card: an old card may be the reason why a turn failed. */
  forget(turn: Turn, config: RemoteConfig): void {
    this.cards.delete(keyOf(turn, config));
  }

  /** The cache key has tenant and agent, because a card may depend on credentials. Those of a caller get no card of another one. */
  private async cardOf(turn: Turn, config: RemoteConfig, fetchImpl: typeof fetch, signal: AbortSignal) {
    if (config.oauth && isOfCaller(config.oauth)) return readCard(config, fetchImpl, signal);
    const key = keyOf(turn, config);
    const known = this.cards.get(key);
    if (known) return known;
    const card = await readCard(config, fetchImpl, signal);
    this.cards.set(key, card);
    return card;
  }
}

async function headersOf({ secrets }: Turn, config: RemoteConfig, traceparent: string | undefined) {
  const own = await readSecretHeaders(secrets, config.headers, originsOf(config)).catch((error: unknown) => {
    const reason = messageOf(error);
    throw new RemoteFailure('final', `The agent cannot be called: ${reason}`);
  });
  const traced = traceparent !== undefined && isTraceparent(traceparent);
  const headers: Record<string, string> = traced ? { traceparent, ...own } : own;
  return { headers, redactor: secrets.redactor };
}

const keyOf = ({ tenantId, agent }: Turn, config: RemoteConfig): string =>
  JSON.stringify([tenantId, agent.id, config]);

/** The extensions to request: those of the settings, and those of the caller that the agent offers. */
function extensionsFor(turn: Turn, config: RemoteConfig, card: AgentCard, host: string): string[] {
  const offered = card.capabilities?.extensions ?? [];
  const ofCaller = config.forward.extensions
    ? turn.extensions.filter((uri) => offered.some((extension) => extension.uri === uri))
    : [];
  const asked = [...new Set([...config.extensions, ...ofCaller])];
  const missing = offered.find(({ uri, required }) => required && !asked.includes(uri));
  if (missing) {
    throw new RemoteFailure(
      'final',
      `The agent at ${host} requires the extension ${missing.uri}: add it to the setting extensions of this agent`,
    );
  }
  return asked;
}

const BINDINGS: readonly string[] = ['JSONRPC', 'HTTP+JSON'];
/** A card is a small file. */
const READ_TIMEOUT_MS = 15_000;

/** Reads cards of A2A 1.0 and 0.3. */
export const cardResolver = (fetchImpl?: typeof fetch): DefaultAgentCardResolver =>
  new DefaultAgentCardResolver({ ...(fetchImpl && { fetchImpl }), legacyCompat: { enabled: true } });

/** The card at `config.card`, with its allowed interfaces. Throws RemoteFailure if none is allowed. */
export async function readCard(
  config: RemoteConfig,
  fetchImpl: typeof fetch,
  signal: AbortSignal,
): Promise<AgentCard> {
  const url = cardUrlOf(config);
  const bounded: typeof fetch = (input, init) =>
    fetchImpl(input, { ...init, signal: AbortSignal.any([signal, timeoutSignal(READ_TIMEOUT_MS)]) });
  // The answer may not have the declared type.
  const card = (await cardResolver(bounded).resolve(url.href, '')) as Partial<AgentCard> | null;
  const interfaces = card?.supportedInterfaces;
  if (!card || !Array.isArray(interfaces) || interfaces.length === 0) {
    throw new RemoteFailure('final', `What lies at ${url.href} is not the card of an A2A agent`);
  }
  return { ...(card as AgentCard), supportedInterfaces: callable(interfaces, config, url) };
}

/**
 * The allowed interfaces of a card: those at the card's own origin or at an origin of the settings. Otherwise a card
 * could send messages and credentials to another server.
 */
function callable(all: readonly AgentInterface[], config: RemoteConfig, { host }: URL): AgentInterface[] {
  const { version, binding } = config;
  const spoken = all.filter(
    ({ protocolBinding, protocolVersion }) =>
      BINDINGS.includes(protocolBinding) &&
      (binding === undefined || binding === protocolBinding) &&
      (version === undefined || (version === '0.3') === isLegacy(protocolVersion)),
  );
  if (spoken.length === 0) {
    const wanted =
      [version && `version ${version}`, binding].filter(Boolean).join(', ') || BINDINGS.join(' or ');
    throw new RemoteFailure('final', `The card of the agent at ${host} offers no interface with ${wanted}`);
  }
  const origins = originsOf(config);
  const allowed = spoken.filter(({ url }) => origins.includes(URL.parse(url)?.origin ?? ''));
  if (allowed.length > 0) return allowed;
  const elsewhere = spoken.map(({ url }) => URL.parse(url)?.origin ?? 'what is no URL');
  throw new RemoteFailure(
    'final',
    `The card of the agent at ${host} sends its callers to ${[...new Set(elsewhere)].join(', ')}: list that in the ` +
      "setting origins of this agent if it is the agent's own",
  );
}

/** A 0.3 card may omit the version. */
const isLegacy = (version: string | undefined): boolean => !version || version.startsWith('0.');

/** Maximum size of an answer, or of an event of a stream. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
/** Maximum size of a card. */
export const MAX_CARD_BYTES = 1024 * 1024;

/** The sign-in of the tenant, or of the caller, at the agent. Undefined: its settings have none. Throws RemoteFailure if the sign-in is missing. */
async function signIn({ secrets }: Turn, { card, oauth }: RemoteConfig): Promise<SignedInFetch | undefined> {
  if (!oauth) return undefined;
  const signedIn = new SignedInFetch(secrets, card, oauth);
  try {
    await signedIn.assertSignedIn();
  } catch (error) {
    if (error instanceof SignInNeeded) throw remoteFailure(error, cardUrlOf({ card }).host);
    throw new RemoteFailure('unreached', `The agent cannot be called: ${messageOf(error)}`);
  }
  return signedIn;
}

async function noteMessage(
  signedIn: SignedInFetch | undefined,
  host: string,
  redactor: Redactor,
): Promise<void> {
  try {
    await signedIn?.note({ kind: 'remote-agent', name: host });
  } catch (error) {
    throw error instanceof SignInNeeded ? remoteFailure(error, host, redactor) : error;
  }
}

/** What the requests of an agent have. */
interface RemoteCaller {
  outbound: OutboundCalls;
  /** They may hold secrets. */
  headers: Record<string, string>;
  /** The origins that may get the headers. A call of another one is refused. */
  origins: readonly string[];
  signedIn?: SignedInFetch | undefined;
}

/** A `fetch` for the SDK's client. It uses the outbound guard, adds the agent's headers, and throws UnfitAnswer for an answer that is not A2A. */
export function remoteFetch(
  { outbound, headers, origins, signedIn }: RemoteCaller,
  maxBytes = MAX_ANSWER_BYTES,
): typeof fetch {
  const guarded = outbound.fetchWithin({ maxBytes, json: true, limit: 'agentAnswer' });
  const send = signedIn?.over(guarded) ?? guarded;
  return async (input, init) => {
    const url = input instanceof Request ? input.url : String(input);
    const origin = originOf(url);
    if (!origins.includes(origin))
      throw new OutboundRefused(`"${origin}" is not one of this agent's origins`);
    const merged = new Headers(init?.headers);
    for (const [name, value] of Object.entries(headers)) merged.set(name, value);
    const response = await send(url, { ...init, headers: [...merged] });
    return toA2aAnswer(response, {
      url,
      wantsStream: isEventStream(merged.get('accept')),
      isLegacy: merged.get('a2a-version')?.startsWith('0.') ?? false,
    });
  };
}
