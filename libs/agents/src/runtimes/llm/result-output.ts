import { firstCharacters } from '@baton/a2a';
import type { ToolResultPart } from 'ai';
import { fileItem, placed, type ShownFile } from './tool-files.js';
import type { ToolResult } from './tools/tool-sources.js';

/** The tool with which a model reads on in a result that was cut. */
export const READ_RESULT = 'read_result';

/** The tool with which a model reads a resource that a tool has linked. */
export const READ_RESOURCE = 'read_resource';

/** Maximum characters of a result that a model reads at once. */
const MAX_CHARACTERS = 100_000;

/** Whether a model reads only the beginning of a result. */
export const isCut = (result: ToolResult, room: number): boolean =>
  textOfResult(result).length > readLimit(result, room);

const readLimit = ({ limit = MAX_CHARACTERS }: ToolResult, room: number): number => Math.min(limit, room);

/**
 * A tool result as the model reads it.
 * @param id the id with which the model reads on
 * @param room maximum characters
 * @param shown the files at their indexes, without those that are not shown
 */
export function resultOutput(
  result: ToolResult,
  id: string,
  room: number,
  shown: readonly (ShownFile | undefined)[] = [],
): ToolResultPart['output'] {
  const { ok } = result;
  const whole = textOfResult(result);
  const read = isCut(result, room) ? beginning(whole, readLimit(result, room), id) : whole;
  const lines = [read, ...notesOnFiles(result, id, shown)].join('\n');
  // Anthropic refuses errors without a text.
  const value = lines.trim() === '' ? '(no output)' : lines;
  const inside = placed(shown, 'result');
  if (inside.length === 0) return { type: ok ? 'text' : 'error-text', value };
  // A result with files has no mark of a failure.
  const text = ok ? value : `[the call failed]\n${value}`;
  return { type: 'content', value: [{ type: 'text', text }, ...inside.map((file) => fileItem(file))] };
}

/** Names the files that the model is not shown, with the artifact of the task that has them. */
const notesOnFiles = (
  { files = [] }: ToolResult,
  id: string,
  shown: readonly (ShownFile | undefined)[],
): string[] =>
  files.flatMap(({ name, mediaType, base64 }, i) =>
    shown[i]
      ? []
      : [
          `[you are not shown ${name} (${mediaType}, ${Buffer.byteLength(base64, 'base64')} bytes): ` +
            `it is the artifact ${fileArtifactId(id, i)} of the task]`,
        ],
  );

/** The id of the artifact of a file of a tool result. */
export const fileArtifactId = (callId: string, index: number): string => `${callId}-file-${index + 1}`;

function beginning(whole: string, limit: number, id: string): string {
  const start = firstCharacters(whole, limit);
  return (
    `${start}\n[cut off: these are the first ${start.length} of ${whole.length} characters. ` +
    `To read on, call ${READ_RESULT} with {"result":"${id}","from":${start.length}}]`
  );
}

/** A result as text. */
export const textOfResult = ({ content, text }: ToolResult): string =>
  text ?? (typeof content === 'string' ? content : JSON.stringify(content ?? null));
