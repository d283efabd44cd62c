import type { ModelRequest, Reply } from './reply.js';

/** Repeats the last message in small chunks. "use <tool> <JSON>" calls the tool, and repeats its result. */
export function parrot(request: ModelRequest): Reply {
  const { text, isResult } = lastSaid(request);
  const [, name, json = '{}'] = isResult ? [] : (/^use (\S+)(?: (.*))?$/s.exec(text) ?? []);
  if (name) return { calls: [{ name, input: JSON.parse(json) as object }] };
  const said = isResult ? `The tool says: ${text}` : `You said: ${text}`;
  return {
    text: said.match(/\s*\S+/g) ?? [said],
    delayMs: 20,
    usage: { input: text.length, output: said.length },
  };
}

/** The last message of the conversation, whatever the interface. */
function lastSaid({ body }: ModelRequest): { text: string; isResult: boolean } {
  const wire = body as Record<string, unknown[]>;
  const last = (wire.messages ?? wire.input ?? wire.contents ?? []).at(-1) as Record<string, unknown>;
  const content = last.content ?? last.parts ?? last.output;
  const isResult =
    last.role === 'tool' || 'output' in last || JSON.stringify(content).includes('tool_result');
  return { text: textOf(content), isResult };
}

function textOf(content: unknown): string {
  if (typeof content === 'string') return content;
  if (Array.isArray(content)) return content.map(textOf).join('');
  const { text, content: inner, functionResponse } = (content ?? {}) as Record<string, unknown>;
  if (typeof text === 'string') return text;
  return functionResponse === undefined ? textOf(inner ?? '') : JSON.stringify(functionResponse);
}
