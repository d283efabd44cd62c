import { failureReason } from '@baton/outbound';
import { NOTHING_SECRET } from '../../../../outbound/redactor.js';
import { codesOf, causesOf } from './error-causes.js';
import { McpFailure } from './mcp-failure.js';

/** Maximum characters of a server's text in the message of its failure. */
const MAX_SHOWN = 300;

/** Explains an error for the author of the agent: a clause about the server, and the remedy. */
export function whyUnusable(error: unknown, redactor = NOTHING_SECRET): string {
  const clause = serverFailure(error, redactor);
  const remedy = error instanceof McpFailure ? error.details.remedy : remedyOf(error);
  return remedy === undefined ? clause : `${clause}. ${remedy}`;
}

/**
 * Explains an error of an MCP server to the tenant: a clause about the server.
 * @param redactor removes secrets that were sent to the server
 */
export function serverFailure(error: unknown, redactor = NOTHING_SECRET): string {
  if (error instanceof McpFailure) {
    const { serverText = '', fromEnd = false } = error.details;
    // Before it is cut: a part of a secret would not be recognized.
    const shown = excerpt(redactor.text(serverText), fromEnd);
    const message = redactor.text(error.message);
    return shown === '' ? message : `${message}: "${shown}"`;
  }
  const reason = SPAWN_REASONS.find(([code]) => codesOf(error).includes(code))?.[1];
  const text = reason ?? failureReason(error) ?? causesOf(error).at(-1)?.message ?? String(error);
  return redactor.text(text).slice(0, MAX_SHOWN);
}

export const SPAWN_REASONS = [
  ['ENOENT', 'its command was not found'],
  ['EACCES', 'its command may not be executed'],
] as const;

/** Text of a server in one line. */
function excerpt(text: string, fromEnd: boolean): string {
  // oxlint-disable-next-line no-control-regex -- servers color what they write
  const line = text
    .replace(/\u001b\[[\d;]*m/g, '')
    .replace(/[\s\p{Cc}]+/gu, ' ')
    .trim();
  if (line.length <= MAX_SHOWN) return line;
  return fromEnd ? `…${line.slice(-MAX_SHOWN)}` : `${line.slice(0, MAX_SHOWN)}…`;
}

function remedyOf(error: unknown): string | undefined {
  const codes = codesOf(error);
  if (codes.includes('ENOENT')) return 'Correct command, or install the program on the workers';
  if (codes.includes('EACCES')) return 'Make the program executable for the user of the workers';
  if (codes.includes('ECONNREFUSED')) return 'Check host and port of url, and that the server runs';
  return codes.includes('ENOTFOUND') ? 'Check the host of url' : undefined;
}
