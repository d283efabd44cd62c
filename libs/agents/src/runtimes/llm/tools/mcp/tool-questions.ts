import { isJsonObject, type JsonObject } from '@baton/a2a';
import { schemaExcess } from '@baton/compute';
import { createHash } from 'node:crypto';
import type { ApprovalAnswer, ApprovalRequest, Decision } from '../../../../approvals.js';
import type { LlmConfig } from '../../llm-config.js';
import type { ToolQuestion } from '../remote-call.js';
import { isInnerHost } from './inner-host.js';
import { McpFailure } from './mcp-failure.js';

/** Maximum questions of a server. They are stored with the task, and shown to a person. */
const MAX_QUESTIONS = 10;
/** Characters of one question. */
const MAX_MESSAGE = 4_000;
/** Characters of a URL that browsers and proxies take. */
const MAX_URL = 2_048;
/** Bytes of the schema of an answer as JSON: a form has some dozen fields. */
const MAX_SCHEMA_BYTES = 16_384;
const ELICIT = 'elicitation/create';

/**
 * Reads the input requests of a server. Throws McpFailure if a person cannot be asked so.
 * @param server its URL in the settings
 */
export function questionsOf(requests: unknown, server: string): Record<string, ToolQuestion> {
  const entries = Object.entries(isJsonObject(requests) ? requests : {});
  if (entries.length > MAX_QUESTIONS) throw unfit(`more than ${MAX_QUESTIONS} questions at once`);
  return Object.fromEntries(entries.map(([key, request]) => [key, questionOf(request, server)]));
}

function questionOf(request: unknown, server: string): ToolQuestion {
  const { method, params } = isJsonObject(request) ? request : ({} as JsonObject);
  if (method !== ELICIT) throw unfit(String(method).slice(0, 60));
  const { mode = 'form', message, requestedSchema, url } = isJsonObject(params) ? params : ({} as JsonObject);
  if (typeof message !== 'string' || message.length > MAX_MESSAGE)
    throw unfit(`a message of at most ${MAX_MESSAGE} characters, or none`);
  if (mode === 'url') {
    const text = typeof url === 'string' && url.length <= MAX_URL ? url : '';
    const parsed = /^https?:\/\//i.test(text) ? URL.parse(text) : null;
    if (parsed === null) throw unfit('an address that is not on the web');
    const { hostname } = parsed;
    // The browser of the person, or a program that reads the question, would reach what the server cannot.
    if (isInnerHost(hostname) && hostname !== new URL(server).hostname)
      throw unfit(
        `the address ${hostname}, which is inside of a network. It may name a public host, or its own`,
      );
    return { message, url: text };
  }
  if (mode !== 'form') throw unfit(`the mode "${String(mode).slice(0, 40)}"`);
  if (!isForm(requestedSchema)) throw unfit('a form that is no flat object');
  return { message, requestedSchema };
}

/** A flat object, as MCP has it for forms. A `$ref` is never followed, so a schema with one is not valid. */
function isForm(schema: unknown): schema is JsonObject {
  if (!isJsonObject(schema) || schema.type !== 'object' || !isJsonObject(schema.properties)) return false;
  const json = JSON.stringify(schema);
  if (Buffer.byteLength(json) > MAX_SCHEMA_BYTES || schemaExcess(schema) !== undefined) return false;
  return !/"\$(ref|dynamicRef|recursiveRef)"\s*:/.test(json);
}

const unfit = (what: string): McpFailure =>
  new McpFailure('error', `it asks a person a question that Baton cannot show: ${what}`);

/** The id of a question among those of its call. */
export const questionId = (key: string): string =>
  /^[\w.-]{1,64}$/.test(key) ? key : `k-${createHash('sha256').update(key).digest('hex').slice(0, 16)}`;

interface AskingCall {
  id: string;
  tool: string;
  server: string;
  terms: Pick<LlmConfig['approvals'], 'guests' | 'by'>;
}

/** The questions as they go up to a person. @param problems why the answers before are none, by key */
export function requestsOf(
  questions: Readonly<Record<string, ToolQuestion>>,
  { id, tool, server, terms }: AskingCall,
  problems: Readonly<Record<string, string>> = {},
): ApprovalRequest[] {
  const { guests, by } = terms;
  return Object.entries(questions).map(([key, question]) => ({
    callId: `${id}/${questionId(key)}`,
    tool,
    description: [problems[key], question.message].filter((text) => text !== undefined).join(' '),
    input: question,
    server,
    question: 'url' in question ? { url: question.url } : { requestedSchema: question.requestedSchema },
    ...(guests && { guests: true as const }),
    ...(by === 'other' && { by }),
  }));
}

/** A person's answers to questions: as MCP has them, and what is wrong with the others. */
export interface ToolAnswers {
  responses: Record<string, JsonObject>;
  problems: Record<string, string>;
}

/** @param check the fault of a form, as it was filled in */
export async function answersTo(
  questions: Readonly<Record<string, ToolQuestion>>,
  { decisions }: ApprovalAnswer,
  check: (schema: JsonObject, content: unknown) => Promise<string | undefined> = () =>
    Promise.resolve(undefined),
): Promise<ToolAnswers> {
  const found: ToolAnswers = { responses: {}, problems: {} };
  for (const [key, question] of Object.entries(questions)) {
    const decision = decisions.find(({ callId }) => callId === questionId(key));
    if (!decision) continue;
    const content = contentOf(question, decision);
    const schema = 'requestedSchema' in question ? question.requestedSchema : undefined;
    const problem = decision.approved && schema ? await check(schema, content) : undefined;
    if (problem !== undefined) found.problems[key] = `The answer is not valid: ${problem}.`;
    else if (!decision.approved) found.responses[key] = { action: 'decline' };
    else found.responses[key] = { action: 'accept', ...(schema && { content }) };
  }
  return found;
}

const contentOf = (question: ToolQuestion, { input }: Decision): unknown =>
  'url' in question ? undefined : (input ?? {});
