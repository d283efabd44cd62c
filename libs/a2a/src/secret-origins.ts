import { MODEL_PROVIDER_NAMES, modelProvider } from './model-providers.js';

// Where a secret may be sent. A destination is the origin of a URL (`https://api.example.com`), or a program that a
// worker starts (`stdio:npx -y @acme/notes`), or an agent in code (`agent:researcher`). A secret lists the destinations that may receive it.

/** The name of a secret. */
export const SECRET_NAME = /^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/;

/** Maximum origins of one secret. A secret is for one service, which has few hosts. */
const MAX_ORIGINS = 32;
/** A name of the DNS has at most 253 characters. */
const MAX_ORIGIN = 512;

const STDIO = 'stdio:';
const AGENT = 'agent:';
const RULE =
  'must be scheme, host and port, such as https://api.example.com, stdio: and a command, such as stdio:npx -y @acme/notes, or ' +
  'agent: and the slug of an agent in code, such as agent:researcher';

/** The destination of requests to a URL. */
export const originOf = (url: string): string => new URL(url).origin;

/** The destination of the environment of a program. */
export const programOrigin = (command: string, args: readonly string[]): string =>
  STDIO + [command, ...args].map(encodeWord).join(' ');

/** The destination of what the code of an installed agent reads. */
export const agentOrigin = (slug: string): string => AGENT + slug;

/** Words of a command are separated by spaces, so spaces inside a word are encoded. */
const encodeWord = (word: string): string => word.replace(/[\s%]/g, encodeURIComponent);

/**
 * Reads the origins that the author of a secret has written. Returns them in one spelling, or the first problem and its
 * place in the list.
 */
export function parseOrigins(
  texts: readonly string[],
): { origins: string[] } | { field: string; problem: string } {
  if (texts.length > MAX_ORIGINS) {
    return { field: 'origins', problem: `must have at most ${MAX_ORIGINS} entries` };
  }
  const origins: string[] = [];
  for (const [i, text] of texts.entries()) {
    const origin = text.length > MAX_ORIGIN ? undefined : parseOrigin(text.trim());
    if (origin === undefined) return { field: `origins[${i}]`, problem: RULE };
    if (!origins.includes(origin)) origins.push(origin);
  }
  return { origins };
}

function parseOrigin(text: string): string | undefined {
  if (text.startsWith(STDIO)) {
    const words = text.slice(STDIO.length).trim();
    return /^\P{Cc}+$/u.test(words) ? STDIO + words.split(/\s+/).join(' ') : undefined;
  }
  if (text.startsWith(AGENT)) return /^agent:[a-z0-9][a-z0-9-]*$/.test(text) ? text : undefined;
  const url = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
  return url !== null && url.href === `${url.origin}/` ? url.origin : undefined;
}

/** The origins of a new secret whose author names none: a provider's for a secret with its name, else none. */
export const defaultOrigins = (name: string): string[] => {
  const provider = MODEL_PROVIDER_NAMES.find((each) => each === name);
  const url = provider && modelProvider(provider).url;
  return url == null ? [] : [originOf(url)];
};

/**
 * Whether a secret may be sent to a destination. A program must begin with the words of the entry.
 * @param origins null: an earlier release stored the secret, and its origins were never set, so it may go anywhere
 */
export const mayReceive = (origins: readonly string[] | null, destination: string): boolean =>
  origins === null ||
  origins.some(
    (origin) => origin === destination || (origin.startsWith(STDIO) && destination.startsWith(`${origin} `)),
  );

/** Why a secret is refused, with the remedy. @param commandLine how to call the command line, such as `node bin/baton.cjs` */
export const originRefusal = (name: string, destination: string, commandLine: string): string =>
  `the secret "${name}" may not be sent to ${destination.slice(0, MAX_ORIGIN)}: a caller with the scope secrets:write can add that to its ` +
  `origins (${commandLine} secrets origins ${name} …)`;
