import type { RequestInit, Response } from 'undici';
import { OutboundRefused } from './outbound-refused.js';

const REDIRECTS = new Set([301, 302, 303, 307, 308]);

/**
 * The next request of a redirect, or undefined if the answer is no redirect. Throws OutboundRefused for another origin:
 * headers and bodies hold credentials that the tenant did not mean for it.
 */
export function nextRequest(
  url: URL,
  request: RequestInit,
  { status, headers }: Response,
): { url: URL; request: RequestInit } | undefined {
  const location = headers.get('location');
  if (!REDIRECTS.has(status) || location === null) return undefined;
  const next = URL.parse(location, url.href);
  if (next?.origin !== url.origin) {
    const where = next ? `to ${next.origin}` : 'to what is no URL';
    throw new OutboundRefused(
      `"${url.host}" redirects ${where}, which is not followed; write that URL instead`,
    );
  }
  if (status === 307 || status === 308) return { url: next, request: withSameBody(request, url) };
  const isRead = request.method === 'GET' || request.method === 'HEAD' || request.method === undefined;
  if (isRead) return { url: next, request };
  const { body: _, ...rest } = request;
  return { url: next, request: { ...rest, method: 'GET', headers: withoutContent(request) } };
}

function withSameBody(request: RequestInit, url: URL): RequestInit {
  const { body } = request;
  if (body && typeof body === 'object' && Symbol.asyncIterator in body)
    throw new OutboundRefused(`"${url.host}" redirects a request whose body can be sent only once`);
  return request;
}

function withoutContent({ headers }: RequestInit): [string, string][] {
  return [...new Headers(headers as Record<string, string>)].filter(([name]) => !name.startsWith('content-'));
}
