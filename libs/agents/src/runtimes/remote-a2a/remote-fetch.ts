import type { Outbound } from '../../outbound/outbound.js';
import { HttpFailure } from './remote-failure.js';

/** Of one answer, or of one event of a stream. */
const MAX_ANSWER_BYTES = 32 * 1024 * 1024;
/** Of a card. */
export const MAX_CARD_BYTES = 1024 * 1024;
/** Answers of proxies and guards before the agent, whatever their body is. */
const NOT_OF_THE_AGENT = new Set([401, 403, 407, 408, 413, 429, 502, 503, 504]);

/**
 * A `fetch` for the SDK's client: through the guard, with the agent's own headers, and with errors of HTTP as
 * HttpFailure where the body can't say more.
 *
 * @param headers with secrets in them: the caller sees to it that only the agent's origins are called
 */
export function remoteFetch(
  outbound: Outbound,
  headers: Record<string, string>,
  maxBytes = MAX_ANSWER_BYTES,
): typeof fetch {
  const guarded = outbound.fetchWithin({ maxBytes, json: true, limit: 'agentAnswer' });
  return async (input, init) => {
    const merged = new Headers(init?.headers);
    for (const [name, value] of Object.entries(headers)) merged.set(name, value);
    const response = await guarded(input, { ...init, headers: [...merged] });
    if (response.ok || (isJson(response) && !NOT_OF_THE_AGENT.has(response.status))) return response;
    await response.body?.cancel();
    throw new HttpFailure(response.status);
  };
}

const isJson = ({ headers }: Response): boolean => /[/+]json\b/.test(headers.get('content-type') ?? '');
