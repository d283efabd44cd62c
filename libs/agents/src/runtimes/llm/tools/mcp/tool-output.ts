import { jsonExcess } from '@baton/a2a';
import type { CallToolResult, ContentBlock } from '@modelcontextprotocol/sdk/types.js';
import { createHash } from 'node:crypto';
import type { ToolFile, ToolResult } from '../agent-tool.js';

/** Maximum content blocks of a result. */
export const MAX_BLOCKS = 200;

/**
 * Converts the result of a call for the model and for callers. Images and other files become files of the task, and
 * the model reads that they exist.
 *
 * @param limit maximum characters that the model sees
 * @param maxFileBytes maximum size of all files of the result
 */
export function toolOutput(
  tool: string,
  result: CallToolResult,
  limit: number,
  maxFileBytes: number,
): ToolResult {
  const files: ToolFile[] = [];
  const left = result.content.length - MAX_BLOCKS;
  const texts = result.content
    .slice(0, MAX_BLOCKS)
    .map((block) =>
      describe(block, (file) => keep(files, named(file, `${tool}-${files.length + 1}`), maxFileBytes)),
    );
  if (left > 0) texts.push(`[${left} more items were left out: a result has ${MAX_BLOCKS} at most]`);
  const { structuredContent } = result;
  const hasJson = texts.some(isJson);
  const parts = structuredContent && !hasJson ? [...texts, JSON.stringify(structuredContent)] : texts;
  const text = cut(parts.join('\n'), limit);
  const content =
    structuredContent && JSON.stringify(structuredContent).length <= limit ? structuredContent : text;
  return { ok: result.isError !== true, content, text, ...(files.length > 0 && { files }) };
}

type Keep = (file: ToolFile) => string;

function describe(block: ContentBlock, keepFile: Keep): string {
  switch (block.type) {
    case 'text':
      return block.text;
    case 'image':
    case 'audio':
      return keepFile({ name: '', mediaType: block.mimeType, base64: block.data });
    case 'resource_link':
      return `[resource ${block.title ?? block.name}: ${block.uri}]`;
    case 'resource': {
      const { resource } = block;
      if ('text' in resource) return `[resource ${resource.uri}]\n${resource.text}`;
      const mediaType = resource.mimeType ?? 'application/octet-stream';
      return keepFile({ name: resource.uri.split('/').at(-1) ?? '', mediaType, base64: resource.blob });
    }
  }
}

/** Gives a file without a name one with the extension of its type. */
function named(file: ToolFile, name: string): ToolFile {
  const [ending] = /(?<=\/)[a-z0-9]+/.exec(file.mediaType) ?? [];
  return { ...file, name: file.name || (ending === undefined ? name : `${name}.${ending}`) };
}

/** Keeps a file if there is room. @returns the text about the file for the model */
function keep(files: ToolFile[], file: ToolFile, max: number): string {
  const bytes = [...files, file].reduce((sum, { base64 }) => sum + sizeOf(base64), 0);
  const what = `${file.mediaType}, ${sizeOf(file.base64)} bytes`;
  if (bytes > max) return `[file ${file.name} (${what}) left out: too large]`;
  files.push(file);
  return `[file ${file.name} (${what}): the user has been given it]`;
}

const sizeOf = (base64: string): number => Buffer.byteLength(base64, 'base64');

function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  return `${text.slice(0, limit)}\n[cut off: these are the first ${limit} of ${text.length} characters]`;
}

function isJson(text: string): boolean {
  if (jsonExcess(text)) return false;
  try {
    // oxlint-disable-next-line no-restricted-properties -- bounded above
    JSON.parse(text);
    return true;
  } catch {
    return false;
  }
}

/** Maximum length of a function name that every provider accepts. */
const MAX_LENGTH = 64;
const DIGEST_LENGTH = 6;

/** A tool, by its server's name in the definition and its own name at the server. */
export interface NamedTool {
  server: string;
  tool: string;
}

/**
 * The names of the tools for the model: `server_tool` of letters, digits, `_` and `-`, at most 64 characters, and
 * unique. They depend only on the given names, so that a later turn on another worker calls the same tool.
 */
export function namesForModel(tools: readonly NamedTool[]): string[] {
  const plain = tools.map(({ server, tool }) => `${server}_${tool}`.replace(/[^A-Za-z0-9_-]/g, '_'));
  const times = new Map<string, number>();
  for (const name of plain) times.set(name, (times.get(name) ?? 0) + 1);
  return tools.map((tool, i) => {
    const name = plain[i] ?? '';
    const isFine = name.length <= MAX_LENGTH && times.get(name) === 1;
    return isFine ? name : `${name.slice(0, MAX_LENGTH - DIGEST_LENGTH - 1)}_${digest(tool)}`;
  });
}

const digest = ({ server, tool }: NamedTool): string =>
  createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, DIGEST_LENGTH);
