import getPort from 'get-port';
import { once } from 'node:events';
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { inUrl } from './loopback.js';

/** The port, or any free one if it is taken. */
const PORT = 11_500;
/** A conversation with its tools has some hundred kilobytes. */
const MAX_BODY_BYTES = 4 * 1024 * 1024;
/** Time between two words. */
const WORD_MS = 15;
/** The tool with which a model asks the agent `echo`. */
const ASK_ECHO = 'ask_echo';

interface ChatMessage {
  role: string;
  content: unknown;
}

interface ChatRequest {
  messages: ChatMessage[];
  tools: { function?: { name?: string } }[];
}

/** The answer of the model: the next words, or a call of its tool. */
interface ScriptedReply {
  text: string;
  call?: { name: string; input: string };
}

/**
 * A model without a provider and without a key, for the first minutes with `npm start`: it asks the agent `echo` once, and repeats
 * the answer. It has OpenAI's chat completions API, so an agent calls it as it would call Ollama.
 */
export class ScriptedModel {
  private constructor(
    private readonly server: Server,
    /** The base URL for an agent. */
    readonly url: string,
  ) {}

  /** @param port the one to take if it is free, such as that of the start before */
  static async start(host: string, port = PORT): Promise<ScriptedModel> {
    const server = createServer((request, response) => {
      answer(request, response).catch(() => response.destroy());
    });
    const free = await getPort({ port, host });
    server.listen(free, host);
    await once(server, 'listening');
    return new ScriptedModel(server, `http://${inUrl(host)}:${free}/v1`);
  }

  async stop(): Promise<void> {
    this.server.closeAllConnections();
    this.server.close();
    await once(this.server, 'close');
  }
}

async function answer(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    bytes += part.byteLength;
    if (bytes > MAX_BODY_BYTES) return void response.writeHead(413).end();
    parts.push(part);
  }
  if (request.url !== '/v1/chat/completions') return void response.writeHead(404).end();
  const asked = JSON.parse(Buffer.concat(parts).toString()) as Partial<ChatRequest>;
  const { messages = [], tools = [] } = asked;
  const { text, call } = nextAnswer({ messages, tools });
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  const send = (choices: object[], more: object = {}): void => {
    const chunk = { id: 'scripted', object: 'chat.completion.chunk', created: 0, model: 'scripted' };
    response.write(`data: ${JSON.stringify({ ...chunk, choices, ...more })}\n\n`);
  };
  for (const content of text.match(/\s*\S+/g) ?? []) {
    send([{ index: 0, delta: { content }, finish_reason: null }]);
    await delay(WORD_MS);
  }
  if (call) {
    const made = { name: call.name, arguments: call.input };
    const calls = [{ index: 0, id: `call_${messages.length}`, type: 'function', function: made }];
    send([{ index: 0, delta: { tool_calls: calls }, finish_reason: null }]);
  }
  send([{ index: 0, delta: {}, finish_reason: call ? 'tool_calls' : 'stop' }]);
  const [input, output] = [tokensOf(JSON.stringify(messages)), tokensOf(text + (call?.input ?? ''))];
  const usage = { prompt_tokens: input, completion_tokens: output, total_tokens: input + output };
  send([], { usage });
  response.end('data: [DONE]\n\n');
}

/** About as many as a model would count. */
const tokensOf = (text: string): number => Math.ceil(text.length / 4);

function nextAnswer({ messages, tools }: ChatRequest): ScriptedReply {
  const last = messages.at(-1);
  const question = textOf(messages.findLast(({ role }) => role === 'user')?.content);
  if (last?.role === 'tool') {
    return {
      text:
        `You wrote: "${question}" I have asked the agent \`echo\`, and it has answered. Its task is in the trace of this one, ` +
        'with what I was sent and what I said.\n\nI am a script, not a model: set another `model` on the page of this agent, ' +
        'and the secret with its key, to have a real one answer.',
    };
  }
  if (tools.some((tool) => tool.function?.name === ASK_ECHO)) {
    return {
      text: 'I ask another agent first.',
      call: { name: ASK_ECHO, input: JSON.stringify({ message: question }) },
    };
  }
  return { text: `You wrote: "${question}" I am a script, not a model.` };
}

/** The text of a message, whose content is a text or a list of parts. */
function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) return '';
  return content.map((part: { text?: unknown }) => (typeof part.text === 'string' ? part.text : '')).join('');
}
