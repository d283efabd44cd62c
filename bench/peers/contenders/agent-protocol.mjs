import { eventsIn, post } from './caller.mjs';

const json = { 'content-type': 'application/json' };
// As the others do: a step is kept before the next one begins, and what a send has left stays.
const KEPT = { durability: 'sync', on_completion: 'keep' };

/** Calls of a server with LangGraph's API. Each run has a thread of its own. */
export function agentProtocol(url) {
  const run = (path, graph, input, more) => {
    const body = { assistant_id: graph, input, ...KEPT, ...more };
    return post(`${url}/runs${path}`, JSON.stringify(body), json);
  };
  return {
    send: () => run('/wait', 'send', { text: 'hello' }),
    steps: () => run('/wait', 'steps', { text: 'hello' }),
    stream: async (chunks) =>
      Math.min(chunks, eventsIn(await run('/stream', 'stream', { chunks }, { stream_mode: ['custom'] }))),
    ticker: (observer) => run('', 'ticker', { url: observer }, { config: { recursion_limit: 1_000_000 } }),
  };
}
