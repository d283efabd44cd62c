import { isUtf8 } from 'node:buffer';
import type { HttpAnswer } from './exchange.js';
import type { HttpCase } from './http-cases.js';

/** The secret that models and tools are shown, and that no caller may see. */
export const KEY = 'sk-fuzz-0123456789abcdef';
/** More than any error needs to say. */
const MAX_ERROR_CHARS = 100_000;

/** What must never reach a caller. Nothing that is sent looks like this. */
export const LEAK =
  /(\n|\\n)\s+at |node_modules|\/dist\/|\/libs\/|\bTypeError\b|Cannot read prop|is not a function|prisma|violates|syntax error at|invalid input syntax|relation "|ECONNREFUSED|SELECT .* FROM|sk-fuzz-/i;
const RPC_PATHS =
  /^\/(agents\/[^/]+|v1\/a2a\/agents\/[^/]+|a2a(\/[^/]+)?|v1\/(agent-systems|agents)\/[^/]+\/a2a)?$/;
const RPC_STATUSES = [200, 401, 403, 408, 413, 415, 429];
/** MCP has the meaning of a JSON-RPC error in the status, too. */
const MCP_PATHS = /^\/(agents\/[^/]+\/)?mcp$/;
const MCP_STATUSES = [...RPC_STATUSES, 400, 404, 406];

/** What is wrong with an answer, if anything. */
export function judge(sent: HttpCase, answer: HttpAnswer | string): string | undefined {
  const problem = judgeAny(answer);
  if (problem !== undefined || typeof answer === 'string') return problem;
  const { status, type, text } = answer;
  if (type.startsWith('text/event-stream')) return judgeStream(text);
  if (sent.method !== 'POST' || text === '') return undefined;
  const path = sent.path.split('?')[0] ?? '';
  const statuses = RPC_PATHS.test(path) ? RPC_STATUSES : MCP_PATHS.test(path) ? MCP_STATUSES : [];
  if (!statuses.includes(status)) return undefined;
  return judgeRpc(sent, answer);
}

/** The same for Baton's own paths: an error names the fault, and the field if one is wrong. */
export function judgeNative(sent: HttpCase, answer: HttpAnswer | string): string | undefined {
  const problem = judgeAny(answer);
  if (problem !== undefined || typeof answer === 'string') return problem;
  const { status, text } = answer;
  if (status < 400) return text === '' || isJson(text) ? undefined : `no JSON: ${text.slice(0, 200)}`;
  if (text.length > MAX_ERROR_CHARS) return `an error of ${text.length} characters: ${text.slice(0, 300)}`;
  if (!isJson(text)) return `no JSON: ${text.slice(0, 200)}`;
  const { error } = JSON.parse(text) as {
    error?: { code?: unknown; status?: unknown; message?: unknown; fields?: unknown[] };
  };
  if (error?.code !== status || typeof error.status !== 'string' || !error.message) {
    return `an error without code, status or message: ${text.slice(0, 200)}`;
  }
  const isOfFields = status === 400 && error.status === 'INVALID_PARAMS' && sent.body !== undefined;
  if (isOfFields && !error.fields?.length) return `an error that names no field: ${text.slice(0, 300)}`;
  return undefined;
}

/** Whatever was asked: it is answered, not with an error of ours, and shows nothing of the inside. */
function judgeAny(answer: HttpAnswer | string): string | undefined {
  if (typeof answer === 'string') return `unanswered: ${answer}`;
  const { status, text } = answer;
  if (status >= 500 || status < 100) return `status ${status}: ${text.slice(0, 300)}`;
  // The settings of an agent name the program of Node, which may be a package of npm.
  const leak = LEAK.exec(text.replaceAll(process.execPath, 'node'));
  return leak
    ? `leaks ${JSON.stringify(leak[0])}: ${text.slice(Math.max(0, leak.index - 100), leak.index + 300)}`
    : undefined;
}

function judgeStream(text: string): string | undefined {
  for (const line of text.split('\n').slice(0, -2)) {
    if (/^(id: \d+|event: \w+|: .*|)$/.test(line)) continue;
    if (!line.startsWith('data: ') || !isJson(line.slice(6)))
      return `a stream with the line ${line.slice(0, 200)}`;
  }
  return undefined;
}

function judgeRpc({ body, headers }: HttpCase, { status, text }: HttpAnswer): string | undefined {
  if (!isJson(text)) return `no JSON: ${text.slice(0, 200)}`;
  const answer = JSON.parse(text) as Record<string, unknown> | null;
  if (answer?.jsonrpc !== '2.0' || !('id' in answer)) return `no JSON-RPC: ${text.slice(0, 200)}`;
  if ('result' in answer === 'error' in answer) return `not one of result and error: ${text.slice(0, 200)}`;
  const error = answer.error as { code?: unknown; message?: unknown } | undefined;
  if (error && (!Number.isInteger(error.code) || typeof error.message !== 'string' || error.message === '')) {
    return `an error without code or message: ${text.slice(0, 200)}`;
  }
  if (error && text.length > MAX_ERROR_CHARS) {
    return `an error of ${text.length} characters: ${text.slice(0, 300)}`;
  }
  const expected = idOf(body);
  const beforeTheId =
    status !== 200 || error?.code === -32700 || error?.code === -32600 || 'a2a-version' in headers;
  if (answer.id === expected || (error && beforeTheId && answer.id === null)) return undefined;
  // A body that nests too deep is refused where it does, whatever follows: the id before it has been read.
  if (error?.code === -32600 && body?.includes(`"id":${JSON.stringify(answer.id)}`)) return undefined;
  return `id ${JSON.stringify(answer.id)} for ${JSON.stringify(expected)}`;
}

/** The id that a request has, as far as it is one that may be had. */
function idOf(body: Buffer | undefined): unknown {
  if (!body || !isUtf8(body) || !isJson(body.toString())) return null;
  const request = JSON.parse(body.toString()) as { id?: unknown } | null;
  const id = typeof request === 'object' && request && Object.hasOwn(request, 'id') ? request.id : null;
  const isId = typeof id === 'string' ? id.length <= 4096 : Number.isSafeInteger(id);
  return isId ? id : null;
}

function isJson(text: string): boolean {
  try {
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}
