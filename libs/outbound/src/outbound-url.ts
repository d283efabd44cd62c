import { z } from 'zod';
import { OutboundRefused } from './outbound-refused.js';

function problemOf(url: URL): string | undefined {
  if (url.protocol !== 'https:' && url.protocol !== 'http:') return 'must begin with https:// or http://';
  // Credentials in a URL would appear in logs and on cards. They belong into headers with secrets.
  if (url.username !== '' || url.password !== '') return 'must not hold a user name or password';
  return undefined;
}

/** Throws OutboundRefused for a URL that no setting of the operator allows. */
export function checkOutboundUrl(url: URL): void {
  const problem = problemOf(url);
  if (problem !== undefined) throw new OutboundRefused(`the URL to "${url.host}" ${problem}`);
}

/** A URL in an agent's settings. The address is checked when it is called. */
export const outboundUrl = z
  .string()
  .max(2048, 'must not have more than 2048 characters')
  .superRefine((text, context) => {
    const url = URL.parse(text);
    const problem = url === null ? 'must be a URL such as https://example.com' : problemOf(url);
    if (problem !== undefined) context.addIssue({ code: 'custom', message: problem });
  });

/** Removes trailing slashes. A regular expression would take quadratic time for many slashes. */
export function withoutEndSlashes(text: string): string {
  let end = text.length;
  while (text[end - 1] === '/') end -= 1;
  return text.slice(0, end);
}
