import { z } from 'zod';
import { outboundUrl, withoutEndSlashes } from '../../outbound/outbound-url.js';
import { secretHeaders } from '../../outbound/secret-headers.js';
import { duration } from '../llm/duration.js';

const VERSIONS = ['1.0', '0.3'] as const;
const BINDINGS = ['JSONRPC', 'HTTP+JSON'] as const;
const oneOf = (names: readonly string[]): string =>
  `must be ${names.map((name) => `"${name}"`).join(' or ')}`;

const flag = z.boolean('must be true or false').prefault(true);

const origin = outboundUrl.refine(
  (text) => URL.canParse(text) && new URL(text).origin === text.replace(/\/$/, ''),
  'must be scheme and host, such as https://api.example.com',
);

/** The settings of an agent that lives elsewhere, as an author writes them. */
export const remoteConfigSchema = z.strictObject({
  /** Its card (a URL that ends in .json), or the URL below which `/.well-known/agent-card.json` lies. */
  card: outboundUrl,
  /** Sent with every request, that for the card included; values may be secrets. */
  headers: secretHeaders.prefault({}),
  /** Further origins that the card may name as the agent's. */
  origins: z
    .array(origin)
    .max(16, 'must have at most 16 entries')
    .transform((urls) => urls.map((url) => new URL(url).origin))
    .prefault([]),
  /** Of what the card offers; the newest version and JSON-RPC if it is left out. */
  version: z.enum(VERSIONS, oneOf(VERSIONS)).optional(),
  binding: z.enum(BINDINGS, oneOf(BINDINGS)).optional(),
  /** Extensions to ask for whatever the caller asks for. */
  extensions: z.array(z.string().min(1).max(512)).max(32).prefault([]),
  /** What of the caller's message is passed on besides its parts. */
  forward: z.strictObject({ metadata: flag, extensions: flag }).prefault({}),
  /** Whether a message is sent again when it is not known if it has arrived. */
  repeat: z.enum(['again', 'never'], oneOf(['again', 'never'])).prefault('again'),
  /** Longest time of one turn. */
  timeout: duration('24h'),
  /** Longest time without any news of the task. */
  stall: duration('1h'),
  /** How long an agent that can't be reached is tried again while it works on a task. */
  reconnect: duration('2m'),
});

/** The settings with the standard values filled in; durations are in milliseconds. */
export type RemoteConfig = z.output<typeof remoteConfigSchema>;

/** Where the card is. */
export function cardUrlOf({ card }: Pick<RemoteConfig, 'card'>): URL {
  const url = new URL(card);
  if (!url.pathname.endsWith('.json')) {
    url.pathname = `${withoutEndSlashes(url.pathname)}/.well-known/agent-card.json`;
  }
  return url;
}
