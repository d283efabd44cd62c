import type { AgentCard, AgentInterface } from '@baton/a2a';
import { DefaultAgentCardResolver } from '@a2a-js/sdk/client';
import { type RemoteConfig, cardUrlOf } from './remote-config.js';
import { RemoteFailure } from './remote-failure.js';
import { timeoutSignal } from '../../outbound/timeout-signal.js';

const BINDINGS: readonly string[] = ['JSONRPC', 'HTTP+JSON'];
const READ_TIMEOUT_MS = 15_000;

/** Reads both generations of cards. */
export const cardResolver = (fetchImpl?: typeof fetch): DefaultAgentCardResolver =>
  new DefaultAgentCardResolver({ ...(fetchImpl && { fetchImpl }), legacyCompat: { enabled: true } });

/** The card behind `config.card`, with those of its interfaces that may be called. Throws RemoteFailure if none may. */
export async function readCard(
  config: RemoteConfig,
  fetchImpl: typeof fetch,
  signal: AbortSignal,
): Promise<AgentCard> {
  const url = cardUrlOf(config);
  const bounded: typeof fetch = (input, init) =>
    fetchImpl(input, { ...init, signal: AbortSignal.any([signal, timeoutSignal(READ_TIMEOUT_MS)]) });
  // What an agent sends need not be what its type says.
  const card = (await cardResolver(bounded).resolve(url.href, '')) as Partial<AgentCard> | null;
  const interfaces = card?.supportedInterfaces;
  if (!card || !Array.isArray(interfaces) || interfaces.length === 0) {
    throw new RemoteFailure('final', `What lies at ${url.href} is not the card of an A2A agent`);
  }
  return { ...(card as AgentCard), supportedInterfaces: callable(interfaces, config, url) };
}

/**
 * Messages and credentials go to the card's own origin or to those that the settings list: whoever writes the card
 * must not be able to send them elsewhere.
 */
function callable(
  all: readonly AgentInterface[],
  config: RemoteConfig,
  { origin, host }: URL,
): AgentInterface[] {
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
  const origins = [origin, ...config.origins];
  const allowed = spoken.filter(({ url }) => URL.canParse(url) && origins.includes(new URL(url).origin));
  if (allowed.length > 0) return allowed;
  const elsewhere = spoken.map(({ url }) => (URL.canParse(url) ? new URL(url).origin : 'what is no URL'));
  throw new RemoteFailure(
    'final',
    `The card of the agent at ${host} sends its callers to ${[...new Set(elsewhere)].join(', ')}: list that in the ` +
      "setting origins of this agent if it is the agent's own",
  );
}

/** A card may leave it out. */
const isLegacy = (version: string | undefined): boolean => !version || version.startsWith('0.');
