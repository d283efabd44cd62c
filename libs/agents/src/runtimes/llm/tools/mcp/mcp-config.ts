import { oauthSettings } from '@baton/a2a';
import { z } from 'zod';
import { duration, durationText } from '../../../../setting-fields.js';

/** Each is opened before the first request of a turn. */
const MAX_SERVERS = 16;

/** Each turn matches the patterns with every tool of a server. */
const MAX_PATTERNS = 200;
/** The time of a match grows with the stars of a pattern. */
const MAX_STARS = 8;

const pattern = z
  .string()
  .min(1)
  .max(128)
  .refine((text) => text.split('*').length <= MAX_STARS + 1, `must have at most ${MAX_STARS} stars`);
const PATTERNS_RULE = `must be "all", or a list of names of tools (at most ${MAX_PATTERNS}), in which * stands for any characters`;
const patterns = z.union(
  [z.literal('all', PATTERNS_RULE), z.array(pattern).max(MAX_PATTERNS, PATTERNS_RULE)],
  PATTERNS_RULE,
);

/** A text, or a secret of the tenant with an optional prefix. */
const secretValue = z.union(
  [z.string(), z.strictObject({ secret: z.string().min(1), prefix: z.string().default('') })],
  { error: 'must be a text, or {secret: <name of a secret>, prefix: <text>}' },
);
export type SecretValue = z.output<typeof secretValue>;

/** Headers of the connection and of the MCP protocol. */
const OWN_HEADERS = /^(host|connection|content-.*|transfer-encoding|accept|mcp-.*|last-event-id)$/i;
const headerName = z
  .string()
  .regex(/^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/, 'is not the name of a header')
  .refine((name) => !OWN_HEADERS.test(name), 'is a header that the connection sets');

const common = {
  /** Prefix of the names of its tools. */
  name: z
    .string()
    .regex(/^[A-Za-z0-9][A-Za-z0-9_-]{0,31}$/, 'must be 1 to 32 letters, digits, hyphens and underscores'),
  /** The tools that the agent can use. Default: all. */
  allow: patterns.optional(),
  /** The tools whose calls a person must approve. */
  approval: patterns.optional(),
  /** The tools that are not called again if the outcome of a call is unknown: the model reads it. */
  neverRepeat: patterns.optional(),
  /** The tools that are called again then. For all others the server's hints decide, or else a person. */
  mayRepeat: patterns.optional(),
  /** The model reads the server's instructions for its tools. */
  instructions: z.boolean('must be true or false').default(true),
  /** The agent works without the server if it is unreachable. */
  optional: z.boolean().default(false),
  /** Maximum time to connect. */
  connectTimeout: duration('10s'),
  /** Maximum time of a call without an answer or progress. */
  timeout: duration('60s'),
  /** Maximum time of a call, whatever progress it reports. */
  totalTimeout: duration('1h'),
  /** Maximum characters of a result that the model sees. */
  resultLimit: z.int().min(1000).max(1_000_000).default(50_000),
};

const remote = z.strictObject({
  ...common,
  url: z
    .url({ protocol: /^https?$/, error: 'must be an http or https URL' })
    .max(2048, 'must have at most 2048 characters'),
  /** Default: `http` (streamable HTTP), with a fallback to `sse`. */
  transport: z.enum(['http', 'sse'], 'must be http or sse').optional(),
  headers: z.record(headerName, secretValue).default({}),
  /** Sign in at the server with OAuth 2.1. */
  oauth: oauthSettings.optional(),
});

const stdio = z.strictObject({
  ...common,
  command: z.string().min(1),
  args: z.array(z.string()).default([]),
  env: z
    .record(z.string().regex(/^[A-Za-z_][A-Za-z0-9_]*$/, 'is not the name of a variable'), secretValue)
    .default({}),
  /** How long the program waits for the next turn of the context. Unset: it ends with the turn. */
  keep: durationText.optional(),
});

/** The MCP servers of an agent. */
export const mcpServers = z
  .array(z.union([remote, stdio]))
  .max(MAX_SERVERS, `must be at most ${MAX_SERVERS} servers`)
  .refine((servers) => new Set(servers.map(({ name }) => name)).size === servers.length, {
    error: 'must have a name of its own for each server',
  })
  .superRefine((servers, context) => {
    for (const [i, server] of servers.entries()) {
      if (!('url' in server) || server.oauth === undefined) continue;
      const header = Object.keys(server.headers).find((name) => name.toLowerCase() === 'authorization');
      const message = 'is set by oauth: remove one of the two';
      if (header !== undefined) context.addIssue({ code: 'custom', path: [i, 'headers', header], message });
    }
  })
  .default([]);

export type RemoteMcpServer = z.output<typeof remote>;
export type StdioMcpServer = z.output<typeof stdio>;
export type McpServerConfig = RemoteMcpServer | StdioMcpServer;

/** Tool names of a definition. `*` matches any characters. `all` = every name. */
export type NamePatterns = readonly string[] | 'all';

/** Whether one of the patterns matches the whole name. */
export function fits(patterns: NamePatterns | undefined, name: string): boolean {
  if (patterns === undefined) return false;
  return patterns === 'all' || patterns.some((pattern) => fitsOne(pattern, name));
}

/** Whether a pattern matches the whole name. */
// No regular expression: one with many stars can take exponential time.
export function fitsOne(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  if (rest.length === 0) return name === pattern;
  const last = rest.pop() ?? '';
  if (!name.startsWith(first)) return false;
  let from = first.length;
  for (const piece of rest) {
    const at = name.indexOf(piece, from);
    if (at < 0) return false;
    from = at + piece.length;
  }
  return name.length - last.length >= from && name.endsWith(last);
}

/**
 * A command that tenants can start: names of the variables that a tenant can set (each with `=`), then the first words
 * of the command line.
 */
export type StdioAllowance = readonly string[];

interface CommandLine {
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, unknown>>;
}

/** Why tenants cannot start a command; undefined if they can. */
export function whyNotAllowed(
  { command, args, env }: CommandLine,
  allowances: readonly StdioAllowance[],
): string | undefined {
  const line = [command, ...args];
  const fitting = allowances.map(split).filter(({ words }) => words.every((word, i) => line[i] === word));
  if (fitting.length === 0) return `the operator of this server does not allow the command "${command}"`;
  const names = Object.keys(env);
  if (fitting.some(({ variables }) => names.every((name) => variables.includes(name)))) return undefined;
  return `the operator of this server does not allow to set ${names.join(', ')} for the command "${command}"`;
}

function split(allowance: StdioAllowance): { variables: string[]; words: readonly string[] } {
  const start = allowance.findIndex((word) => !word.endsWith('='));
  const variables = allowance.slice(0, start).map((word) => word.slice(0, -1));
  return { variables, words: allowance.slice(start) };
}
