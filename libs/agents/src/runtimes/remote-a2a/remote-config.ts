import { oauthSettings } from '@baton/a2a';
import { z } from 'zod';
import { outboundUrl, withoutEndSlashes } from '@baton/outbound';
import { secretHeaders } from '../../outbound/secret-headers.js';
import { duration } from '../../setting-fields.js';

const VERSIONS = ['1.0', '0.3'] as const;
const BINDINGS = ['JSONRPC', 'HTTP+JSON'] as const;
const oneOf = (names: readonly string[]): string =>
  `must be ${names.map((name) => `"${name}"`).join(' or ')}`;

const flag = z.boolean('must be true or false').prefault(true);

const origin = outboundUrl.refine(
  (text) => URL.parse(text)?.origin === text.replace(/\/$/, ''),
  'must be scheme and host, such as https://api.example.com',
);

/** The settings of a remote agent, as its author writes them. */
export const remoteConfigSchema = z
  .strictObject({
    /** URL of its card (ends in .json), or the base URL of `/.well-known/agent-card.json`. */
    card: outboundUrl,
    /** Headers of every request, also of the request for the card. Values may be secrets. */
    headers: secretHeaders.prefault({}),
    /** Signs in at the origin of the card (OAuth 2.1). */
    oauth: oauthSettings.optional(),
    /** Further origins that the card may name for the agent. */
    origins: z
      .array(origin)
      .max(16, 'must have at most 16 entries')
      .transform((urls) => urls.map((url) => new URL(url).origin))
      .prefault([]),
    /** Protocol version and binding, of those in the card. Default: the newest version, and JSON-RPC. */
    version: z.enum(VERSIONS, oneOf(VERSIONS)).optional(),
    binding: z.enum(BINDINGS, oneOf(BINDINGS)).optional(),
    /** Extensions to request in addition to those of the caller. */
    extensions: z.array(z.string().min(1).max(512)).max(32).prefault([]),
    /** Fields of the caller's message that are forwarded in addition to its parts. */
    forward: z.strictObject({ metadata: flag, extensions: flag }).prefault({}),
    /** Whether to send a message again if it is unknown whether it arrived. */
    repeat: z.enum(['again', 'never'], oneOf(['again', 'never'])).prefault('again'),
    /** Maximum duration of a turn. */
    timeout: duration('24h'),
    /** Maximum time without a change of the task. */
    stall: duration('1h'),
    /** Time to retry an agent that cannot be reached while it works on a task. */
    reconnect: duration('2m'),
  })
  .superRefine(({ oauth, headers }, context) => {
    const header = Object.keys(headers).find((name) => name.toLowerCase() === 'authorization');
    const message = 'is set by oauth: remove one of the two';
    if (oauth && header !== undefined)
      context.addIssue({ code: 'custom', path: ['headers', header], message });
  });

/** The settings with defaults filled in. Durations are in milliseconds. */
export type RemoteConfig = z.output<typeof remoteConfigSchema>;

/** Every origin that may get the agent's headers: that of the card, and those that the card may name. */
export const originsOf = (config: Pick<RemoteConfig, 'card' | 'origins'>): string[] => [
  cardUrlOf(config).origin,
  ...config.origins,
];

/** The URL of the card. */
export function cardUrlOf({ card }: Pick<RemoteConfig, 'card'>): URL {
  const url = new URL(card);
  if (!url.pathname.endsWith('.json')) {
    url.pathname = `${withoutEndSlashes(url.pathname)}/.well-known/agent-card.json`;
  }
  return url;
}
