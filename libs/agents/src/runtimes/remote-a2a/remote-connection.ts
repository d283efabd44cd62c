import type { AgentCard } from '@baton/a2a';
import {
  type Client,
  ClientFactory,
  JsonRpcTransportFactory,
  RestTransportFactory,
  ServiceParameters,
  withA2AExtensions,
} from '@a2a-js/sdk/client';
import { Injectable } from '@nestjs/common';
import { LRUCache } from 'lru-cache';
import { Outbound } from '../../outbound/outbound.js';
import { Redactor } from '../../outbound/redactor.js';
import { readSecretHeaders } from '../../outbound/secret-headers.js';
import type { Turn } from '../../runtime.js';
import { SecretReader } from '../../ports.js';
import { cardResolver, readCard } from './remote-card.js';
import { type RemoteConfig, cardUrlOf } from './remote-config.js';
import { RemoteFailure, remoteFailure } from './remote-failure.js';
import { MAX_CARD_BYTES, remoteFetch } from './remote-fetch.js';

const CARD_CACHE_MS = 60_000;
const CARD_CACHE_SIZE = 1_000;
/** As W3C Trace Context writes it. */
const TRACEPARENT = /^[0-9a-f]{2}-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$/;

/** A remote agent, ready to be called in one turn. */
export interface RemoteConnection {
  client: Client;
  /** Named in errors. */
  host: string;
  streams: boolean;
  /** URIs of the extensions that are asked for. */
  extensions: readonly string[];
  serviceParameters: ServiceParameters;
  /** Takes the agent's secrets out of what the remote agent says. */
  redactor: Redactor;
}

/** Prepares calls of remote agents: reads credentials and cards, chooses the interface. */
@Injectable()
export class RemoteConnector {
  private readonly cards = new LRUCache<string, AgentCard>({ max: CARD_CACHE_SIZE, ttl: CARD_CACHE_MS });

  constructor(
    private readonly outbound: Outbound,
    private readonly secrets: SecretReader,
  ) {}

  /** Throws RemoteFailure; one that passes may be tried again. */
  async connect(turn: Turn, config: RemoteConfig, signal: AbortSignal): Promise<RemoteConnection> {
    const { host } = cardUrlOf(config);
    const { headers, redactor } = await this.headersOf(turn, config);
    const fetchImpl = remoteFetch(this.outbound, headers);
    const fetchCard = remoteFetch(this.outbound, headers, MAX_CARD_BYTES);
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
    return { client, host, streams, extensions, serviceParameters, redactor };
  }

  /** Read the agent's card anew in the next turn: what it said may be why this one has failed. */
  forget(turn: Turn, config: RemoteConfig): void {
    this.cards.delete(keyOf(turn, config));
  }

  private async headersOf(turn: Turn, config: RemoteConfig) {
    const { traceparent } = turn;
    const values: string[] = [];
    const keep = (value: string): void => void values.push(value);
    const own = await readSecretHeaders(this.secrets, turn.tenantId, config.headers, keep).catch(
      (error: unknown) => {
        const reason = error instanceof Error ? error.message : String(error);
        throw new RemoteFailure('final', `The agent can't be called: ${reason}`);
      },
    );
    const traced = traceparent !== undefined && TRACEPARENT.test(traceparent);
    const headers: Record<string, string> = traced ? { traceparent, ...own } : own;
    return { headers, redactor: new Redactor(values) };
  }

  /** A card that a credential opened is kept for that agent of that tenant only. */
  private async cardOf(turn: Turn, config: RemoteConfig, fetchImpl: typeof fetch, signal: AbortSignal) {
    const key = keyOf(turn, config);
    const known = this.cards.get(key);
    if (known) return known;
    const card = await readCard(config, fetchImpl, signal);
    this.cards.set(key, card);
    return card;
  }
}

const keyOf = ({ tenantId, agent }: Turn, config: RemoteConfig): string =>
  JSON.stringify([tenantId, agent.id, config]);

/** The extensions to ask for: those of the settings, and those of the caller that the agent has. */
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
