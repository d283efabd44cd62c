import { SseError } from '@modelcontextprotocol/sdk/client/sse.js';
import { StreamableHTTPError } from '@modelcontextprotocol/sdk/client/streamableHttp.js';
import { ErrorCode, McpError } from '@modelcontextprotocol/sdk/types.js';
import { isWebPage, titleOf } from '../../../../outbound/web-page.js';
import { codesOf } from './error-causes.js';

/**
 * - `error`: the server's own JSON-RPC error. `refused`: an HTTP status of 300 or more. `unreadable`: an answer that is not MCP.
 * - `cut`: the connection broke in the middle of an answer. With these four the server has dealt with the request.
 * - `broken`: the connection broke before an answer. `ended`: the server's process ended. The outcome of the request is unknown.
 * - `silent`: no answer in time.
 */
export type McpFailureKind = 'error' | 'refused' | 'unreadable' | 'cut' | 'broken' | 'ended' | 'silent';

export interface McpFailureDetails {
  /** Text of the server, at most MAX_SAID characters. It may quote secrets. */
  serverText?: string;
  /** Show the end of `serverText`, not its beginning. */
  fromEnd?: boolean;
  /** HTTP status. */
  status?: number;
  /** The JSON-RPC error, if its code is a number. */
  rpc?: { code: number; data?: unknown };
  /** The refused request named a session. */
  hadSession?: boolean;
  /** The remedy for the agent's author: a sentence without its period. */
  remedy?: string;
}

/** Maximum characters of a server's text that a failure keeps: a model may need all of an error. */
export const MAX_SAID = 16_000;

/** A failure of an MCP server. The message is a clause about the server. */
export class McpFailure extends Error {
  constructor(
    readonly kind: McpFailureKind,
    message: string,
    readonly details: McpFailureDetails = {},
  ) {
    super(message);
  }
}

const CHECK_URL = 'Check url: it must be the MCP endpoint of the server, often with the path /mcp or /sse';
const CHECK_SIGN_IN = 'If the server wants a sign-in, put a token into headers';

/** A refusal by HTTP status (RFC 9110 §15). */
export function httpRefusal(
  status: number,
  {
    serverText = '',
    hadSession = false,
    rpc,
  }: Pick<McpFailureDetails, 'serverText' | 'hadSession' | 'rpc'> = {},
): McpFailure {
  const details = { status, serverText, hadSession, ...(rpc && { rpc }) };
  if (status === 401 || status === 403) {
    const remedy = 'Put a token that the server accepts into headers';
    return new McpFailure('refused', `it does not accept the credentials (HTTP ${status})`, {
      ...details,
      remedy,
    });
  }
  if (status < 400) {
    const remedy = `${CHECK_URL}. ${CHECK_SIGN_IN}`;
    return new McpFailure('refused', `it redirects to another address (HTTP ${status})`, {
      ...details,
      remedy,
    });
  }
  const isLater = status === 429 || status >= 500;
  return new McpFailure('refused', `it answers with HTTP ${status}`, {
    ...details,
    ...(!isLater && { remedy: CHECK_URL }),
  });
}

/** An answer that is not MCP. */
export function unreadable(text: string): McpFailure {
  const remedy = CHECK_URL;
  if (text.trim() === '') return new McpFailure('unreadable', 'its answer is empty', { remedy });
  if (isWebPage(text)) {
    const details = { serverText: textOfPage(text), remedy: `${CHECK_URL}. ${CHECK_SIGN_IN}` };
    return new McpFailure('unreadable', 'it answers with a web page, not as an MCP server', details);
  }
  const serverText = text.slice(0, MAX_SAID);
  return new McpFailure('unreadable', 'its answer is not one of an MCP server', { serverText, remedy });
}

/** The title of a page, or else its beginning. */
export function textOfPage(text: string): string {
  const beginning = text.slice(0, MAX_SAID);
  return (isWebPage(beginning) && titleOf(beginning)) || beginning;
}

/** No answer within a time that the definition sets. */
export function silence(setting: 'connectTimeout' | 'timeout' | 'totalTimeout', ms: number): McpFailure {
  const duration = ms % 1000 === 0 ? `${ms / 1000}s` : `${ms}ms`;
  const why =
    setting === 'connectTimeout'
      ? 'it starts slowly, such as a program that is downloaded first'
      : 'it needs longer';
  return new McpFailure('silent', `it gives no answer in time (${setting} is ${duration})`, {
    remedy: `Raise ${setting} if ${why}`,
  });
}

const BREAKS = new Set(['ECONNRESET', 'EPIPE', 'UND_ERR_SOCKET']);

export const BROKEN = new McpFailure(
  'broken',
  'the connection broke, so the outcome of the call is not known',
);

/** The failure that an error of the SDK stands for. */
export function failureOf(error: unknown): McpFailure | undefined {
  if (error instanceof McpFailure) return error;
  const status = httpStatus(error);
  // WireFetch leaves redirects to the SDK.
  if (status !== undefined)
    return httpRefusal(status, {
      serverText: (error as Error).message.replace(/^.*to endpoint: | \(redirectPolicy.*$/g, ''),
    });
  if (codesOf(error).some((code) => BREAKS.has(code))) return BROKEN;
  if (!(error instanceof McpError)) return undefined;
  // WireAnswers writes every error answer with a failure as its data. The SDK's own errors have none.
  const { kind, message, details } = (error.data ?? {}) as Partial<McpFailure>;
  if (kind !== undefined && message !== undefined) return new McpFailure(kind, message, details);
  return hasCode(error, ErrorCode.ConnectionClosed) ? BROKEN : undefined;
}

export const hasCode = (error: McpError, code: number): boolean => error.code === code;

function httpStatus(error: unknown): number | undefined {
  const isHttp = error instanceof StreamableHTTPError || error instanceof SseError;
  return isHttp && error.code !== undefined && error.code > 0 ? error.code : undefined;
}
