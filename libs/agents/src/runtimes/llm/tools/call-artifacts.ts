import { EVENT_KIND } from '@baton/a2a';
import { dataPart, filePart } from '../../../runtime.js';
import { type RecordedCall, callIdOf } from '../conversation.js';
import type { ToolResult } from './agent-tool.js';

/** Callers see the output of a call up to this length, in characters of JSON. */
const MAX_SHOWN = 32_768;

/** A call as callers see it: an artifact with one data part, marked as no part of the reply. */
export function callArtifact(call: RecordedCall, result: ToolResult) {
  const { toolName, input } = call;
  const { kind, data } = result.shown ?? {
    kind: 'tool-call',
    data: { tool: toolName, ok: result.ok, input, ...shownOutput(result) },
  };
  return {
    artifactId: callIdOf(call),
    name: toolName,
    parts: [dataPart(data)],
    metadata: { [EVENT_KIND]: kind },
  };
}

/** Files that a tool has made, each as an artifact of the reply. */
export const fileArtifacts = (call: RecordedCall, { files = [] }: ToolResult) =>
  files.map(({ name, mediaType, base64 }, i) => ({
    artifactId: `${callIdOf(call)}-file-${i + 1}`,
    name,
    parts: [filePart(name, mediaType, Buffer.from(base64, 'base64'))],
  }));

function shownOutput({ content }: ToolResult): { output?: unknown } {
  return JSON.stringify(content ?? null).length <= MAX_SHOWN ? { output: content } : {};
}
