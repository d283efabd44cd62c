import type { PushExchange } from '@baton/database';
import { SIGNING_PREFIX } from '@baton/identity';
import type { ReceiverSecrets } from './delivery-signer.js';
import type { PushRequest } from './push-request.js';

/** Characters of a body that are kept. They are in a row that each delivery updates, so they must stay few. */
const MAX_BODY = 600;
/** Characters of an answer that are kept. */
const MAX_ANSWER = 400;
/** Characters of a header that are kept. */
const MAX_HEADER = 200;
/** Characters that are searched for secrets. More than what is kept, because a hidden secret is shorter than itself. */
const MAX_SEARCHED = 4_096;
const HIDDEN = '(hidden)';
/** Headers of the proof that are no secret. */
const OPEN_PROOFS: readonly string[] = ['webhook-id', 'webhook-timestamp'];
/** Minimum length of a secret. A shorter one would match inside ordinary words. */
const SHORTEST = 4;

/**
 * A request to a receiver and the beginning of its answer, without secrets and without characters that Postgres cannot store.
 * @param proofs headers of `DeliverySigner`
 * @param answer the first bytes of the body of its answer; undefined: there was no answer
 */
export function pushExchange(
  { headers, body, sequence }: PushRequest,
  proofs: Readonly<Record<string, string>>,
  secrets: ReceiverSecrets,
  answer: Buffer | undefined,
): PushExchange {
  const hidden = Object.entries(proofs).filter(([name]) => !OPEN_PROOFS.includes(name));
  const hide = hider(secrets, hidden);
  const shown = { ...headers, ...proofs, ...Object.fromEntries(hidden.map(([name]) => [name, HIDDEN])) };
  return {
    sequence,
    headers: Object.fromEntries(
      Object.entries(shown).map(([name, value]) => [name, storable(value, MAX_HEADER)]),
    ),
    body: storable(hide(body), MAX_BODY),
    bytes: Buffer.byteLength(body),
    answer: answer === undefined ? null : storable(hide(answer.toString('utf8')), MAX_ANSWER),
  };
}

/** Hides secrets in a text: those of the receiver, with and without their prefix, and the values of these headers. */
function hider(
  { token, credentials, signingSecrets = [] }: ReceiverSecrets,
  proofs: readonly (readonly [string, string])[],
): (text: string) => string {
  const keys = [token, credentials, ...signingSecrets].filter((key) => key !== undefined);
  const texts = [
    ...keys.flatMap((key) => [key, key.replace(SIGNING_PREFIX, '')]),
    ...proofs.flatMap(([, value]) => [value, ...value.split(/[ ,]/)]),
  ]
    .filter((text) => text.length >= SHORTEST)
    // The longest first: a secret may contain a shorter one.
    .sort((a, b) => b.length - a.length);
  return (text) =>
    texts.reduce((left, secret) => left.replaceAll(secret, HIDDEN), text.slice(0, MAX_SEARCHED));
}

/** The beginning of a text as Postgres can store it: without NUL, and without half of a character. */
const storable = (text: string, max: number): string =>
  text
    .replaceAll('\0', '')
    .slice(0, max)
    .replace(/[\uD800-\uDBFF]$/, '');
