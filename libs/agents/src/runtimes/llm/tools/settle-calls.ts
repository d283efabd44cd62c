import { EVENT_KIND, type Part } from '@baton/a2a';
import { artifactChunk, dataPart } from '../../../reply.js';
import type { AgentOutput, Turn } from '../../../runtime.js';
import type { Conversation, PlacedCall } from '../conversation.js';
import { checkOf } from '../json-schema.js';
import type { AgentTool, ToolFile, ToolResult } from './agent-tool.js';

/** Callers see the output of a call up to this length, in characters of JSON. */
const MAX_SHOWN = 32_768;

const failed = (text: string): ToolResult => ({ ok: false, content: text });

/**
 * Make the calls of the model's last step that have no result yet, all at once. Each result is durable before it is
 * said; they are said in the order of the calls.
 */
export async function* settleCalls(
  turn: Turn,
  conversation: Conversation,
  tools: readonly AgentTool[],
  signal: AbortSignal,
): AsyncGenerator<AgentOutput> {
  const calls = conversation.pendingCalls();
  const made = calls.map(async (call) => {
    const result = await makeCall(call, conversation, tools, signal);
    await conversation.add({ kind: 'result', callId: call.toolCallId, result });
    return result;
  });
  // The first that fails ends the turn; the others must not fail unheard.
  for (const one of made) one.catch(() => undefined);
  for (const [i, call] of calls.entries()) {
    const result = await made[i];
    if (result) yield artifactChunk(turn, callArtifact(call, result));
  }
}

async function makeCall(
  call: PlacedCall,
  conversation: Conversation,
  tools: readonly AgentTool[],
  signal: AbortSignal,
): Promise<ToolResult> {
  const { toolName, toolCallId: id, input } = call;
  const tool = tools.find(({ name }) => name === toolName);
  if (!tool) {
    const names = tools.map(({ name }) => name).join(', ') || 'none';
    return failed(`There is no tool "${toolName}". The tools are: ${names}.`);
  }
  const wrong = checkOf(tool.inputSchema)(input);
  if (wrong) return failed(`The input of "${toolName}" is not valid: ${wrong}.`);
  if (tool.repeat === 'never') {
    if (conversation.hasBegun(call)) {
      return failed(
        `Whether "${toolName}" was carried out is not known: the server stopped while the call was made. ` +
          'It was not made again.',
      );
    }
    await conversation.add({ kind: 'begun', callId: id });
  }
  return tool.execute(input, { id, signal });
}

/** A call as callers see it: an artifact with one data part, marked as no part of the reply. */
export function callArtifact({ step, index, toolName, input }: PlacedCall, result: ToolResult) {
  const { kind, data } = result.shown ?? {
    kind: 'tool-call',
    data: { tool: toolName, ok: result.ok, input, ...shownOutput(result) },
  };
  return {
    artifactId: `call-${step}-${index}`,
    name: toolName,
    parts: [dataPart(data), ...(result.files ?? []).map(filePart)],
    metadata: { [EVENT_KIND]: kind },
  };
}

const filePart = ({ name, mediaType, base64 }: ToolFile): Part => ({
  content: { $case: 'raw', value: Buffer.from(base64, 'base64') },
  metadata: undefined,
  filename: name,
  mediaType,
});

function shownOutput({ content }: ToolResult): { output?: unknown } {
  return JSON.stringify(content ?? null).length <= MAX_SHOWN ? { output: content } : {};
}
