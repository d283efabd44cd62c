// What some servers still speak, and nothing newer.
/* oxlint-disable typescript/no-deprecated */
import { SSEClientTransport } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPClientTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js';
import { setTimeout as delay } from 'node:timers/promises';
import type { Link } from './link.js';
import { WatchedFetch } from './watched-fetch.js';

/** How long the goodbye to a server may take. */
const GOODBYE_MS = 1000;

export type HttpKind = 'http' | 'sse';

/** A connection over streamable HTTP, or over the SSE transport that was before it. */
export function httpLink(kind: HttpKind, url: URL, headers: Record<string, string>, send: FetchLike): Link {
  return kind === 'http' ? streamableLink(url, headers, send) : sseLink(url, headers, send);
}

function streamableLink(url: URL, headers: Record<string, string>, send: FetchLike): Link {
  const watched = new WatchedFetch(send);
  const transport = new StreamableHTTPClientTransport(url, {
    fetch: watched.fetch,
    requestInit: { headers },
  });
  const leave = async (): Promise<void> => {
    // A call that was canceled a moment ago: the server is to know.
    await watched.settled();
    await transport.terminateSession().catch(() => undefined);
  };
  return {
    transport,
    leave: () => Promise.race([leave(), delay(GOODBYE_MS, undefined, { ref: false })]),
  };
}

function sseLink(url: URL, headers: Record<string, string>, send: FetchLike): Link {
  const watched = new WatchedFetch(send);
  const transport = new SSEClientTransport(url, { fetch: watched.fetch, requestInit: { headers } });
  // The session of this transport is its one stream: when that breaks, no answer will come any more.
  const start = transport.start.bind(transport);
  transport.start = async () => {
    await start();
    const report = transport.onerror;
    transport.onerror = (error) => {
      report?.(error);
      void transport.close();
    };
  };
  const settled = (): Promise<unknown> => watched.settled();
  return {
    transport,
    leave: async () => {
      await Promise.race([settled(), delay(GOODBYE_MS, undefined, { ref: false })]);
    },
  };
}
