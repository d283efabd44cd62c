import {
  decodeText,
  essenceOf,
  firstCharacters,
  isJsonObject,
  jsonExcess,
  type JsonObject,
} from '@baton/a2a';
import { createHash } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import { TEXT_MEDIA_TYPE } from '../../text-media-type.js';
import { READ_RESOURCE, READ_RESULT } from '../../result-output.js';
import type { ToolFile, ToolResult } from '../tool-sources.js';

/** Maximum content blocks of a result. */
export const MAX_BLOCKS = 200;
/** Maximum characters of a result that are kept, for the model to read on. */
const MAX_KEPT = 1_000_000;
/** Maximum characters of JSON that are shown of an item that cannot be read. */
const MAX_ODD = 500;

interface OutputOptions {
  /** Maximum characters that the model reads at once. */
  limit: number;
  /** Maximum size of all files of the result. */
  maxFileBytes: number;
  /** Removes secrets from the text of a file. Everything else has none any more. */
  redact?: (text: string) => string;
  /** Called if the result has more items than the model sees. */
  onExcess?: () => void;
}

/**
 * Converts the result of a call for the model and for callers. Images and other files become files of the task, and
 * the model reads that they exist. The tool has run, so the model gets all readable content and the names of the rest.
 *
 * @param result as the server wrote it: any JSON value
 */
export function toolOutput(
  tool: string,
  result: unknown,
  { limit, maxFileBytes, redact = (text) => text, onExcess }: OutputOptions,
): ToolResult {
  const files: ToolFile[] = [];
  const { blocks, structured, isError } = readResult(result);
  const left = blocks.length - MAX_BLOCKS;
  const texts = blocks
    .slice(0, MAX_BLOCKS)
    .map((block) =>
      describe(
        block,
        (file) => keepFile(files, named(file, `${tool}-${files.length + 1}`), maxFileBytes),
        redact,
      ),
    );
  if (left > 0) texts.push(`[${left} more items were left out: a result has ${MAX_BLOCKS} at most]`);
  if (left > 0) onExcess?.();
  const isTold = structured === undefined || texts.some((text) => tells(text, structured));
  const parts = isTold ? texts : [...texts, JSON.stringify(structured)];
  if (parts.every((part) => part.trim() === ''))
    parts.push(isError ? 'The tool failed and gave no reason.' : '(The tool gave no output.)');
  const text = cut(parts.join('\n'), MAX_KEPT);
  const isWhole = isJsonObject(structured) && JSON.stringify(structured).length <= limit;
  return {
    ok: !isError,
    content: isWhole ? structured : cut(text, limit),
    text,
    ...(text.length > limit && { limit }),
    ...(files.length > 0 && { files }),
  };
}

/** Maximum length of the URI of a linked resource that can be read. */
const MAX_URI = 2_048;

/** The URIs of the resources that a result links, as far as the model gets them. */
export function linkedUris(result: unknown): string[] {
  const linked = readResult(result)
    .blocks.slice(0, MAX_BLOCKS)
    .flatMap((block) => (isJsonObject(block) && block.type === 'resource_link' ? [block.uri] : []));
  return [...new Set(linked)].filter(isUri);
}

const isUri = (uri: unknown): uri is string =>
  typeof uri === 'string' && uri !== '' && uri.length <= MAX_URI && uri.isWellFormed();

/** Baton's own: the next page of a resource (docs/calling/mcp.md). */
const NEXT_URI = 'baton/nextUri';

/** A result of `resources/read` in the form of that of a tool: its contents, and links to what continues after them. */
export function resourceResult(read: unknown): { content: unknown[] } | undefined {
  const contents = isJsonObject(read) ? read.contents : undefined;
  if (!Array.isArray(contents)) return undefined;
  const content = contents.flatMap((resource: unknown) => {
    const meta = isJsonObject(resource) ? resource._meta : undefined;
    const next = isJsonObject(meta) ? meta[NEXT_URI] : undefined;
    const more = isUri(next) ? [{ type: 'resource_link', title: 'with the next page', uri: next }] : [];
    return [{ type: 'resource', resource }, ...more];
  });
  return { content };
}

interface ReadResult {
  blocks: unknown[];
  structured: unknown;
  isError: boolean;
}

/** A CallToolResult, or another form that servers send in its place. */
function readResult(result: unknown): ReadResult {
  if (!isJsonObject(result))
    return {
      blocks: [odd('a result that is not one of MCP', result)],
      structured: undefined,
      isError: false,
    };
  const { content, structuredContent, isError, toolResult, _meta, ...rest } = result;
  const structured = structuredContent ?? undefined;
  const failed = isError === true || isError === 'true' || isError === 1;
  if (Array.isArray(content)) return { blocks: content, structured, isError: failed };
  // One block without its list.
  if (content !== undefined && content !== null) return { blocks: [content], structured, isError: failed };
  // The protocol of 2024-10 wrote `toolResult`. Some servers write their result without any of these.
  const other = toolResult ?? (Object.keys(rest).length > 0 && structured === undefined ? rest : undefined);
  const blocks = other === undefined ? [] : [typeof other === 'string' ? other : JSON.stringify(other)];
  return { blocks, structured, isError: failed };
}

type Keep = (file: ToolFile) => string;

/** The text about a content block for the model. */
function describe(block: unknown, keepFile: Keep, redact: (text: string) => string): string {
  if (typeof block === 'string') return block;
  if (!isJsonObject(block)) return odd('an item that is no object', block);
  const { type, text } = block;
  switch (type) {
    case 'text':
      return typeof text === 'string' ? text : odd('a text item without text', text);
    case 'image':
    case 'audio':
      return (
        fileOf(block.data, block.mimeType, '', keepFile) ??
        odd(`an item of type ${type} without data in Base64`, cutItem(block))
      );
    case 'resource_link':
      return linkText(block);
    case 'resource':
      return resourceText(block.resource, keepFile, redact);
    default: {
      if (typeof type !== 'string')
        return typeof text === 'string' ? text : odd('an item without a type', block);
      const what = `an item of the unknown type "${type.slice(0, 40)}"`;
      return typeof text === 'string' ? `[${what}]\n${text}` : odd(what, block);
    }
  }
}

function linkText(block: JsonObject): string {
  const { title, name, uri } = block;
  const label = [title, name].find((each) => typeof each === 'string' && each !== '');
  if (typeof uri !== 'string') return odd('a link without its uri', block);
  return label === undefined ? `[resource ${uri}]` : `[resource ${label as string}: ${uri}]`;
}

function resourceText(resource: unknown, keepFile: Keep, redact: (text: string) => string): string {
  if (!isJsonObject(resource)) return odd('a resource without content', resource);
  const { text, blob, mimeType } = resource;
  const uri = typeof resource.uri === 'string' ? resource.uri : '';
  if (typeof text === 'string') return `[resource${uri === '' ? '' : ` ${uri}`}]\n${text}`;
  const name = uri.split('/').at(-1) ?? '';
  return (
    fileOf(blob, mimeType, name, (file) => `${keepFile(file)}${redact(textIn(file, mimeType))}`) ??
    odd('a resource without text or data in Base64', cutItem(resource))
  );
}

/** The text of a file, which the model reads whichever files it takes. Empty for other files. */
function textIn({ mediaType, base64 }: ToolFile, given: unknown): string {
  if (!TEXT_MEDIA_TYPE.test(mediaType)) return '';
  const type = typeof given === 'string' ? given : mediaType;
  return `\n${decodeText(Buffer.from(base64, 'base64'), type)}`;
}

/** Keeps a file. @returns undefined if its data is not Base64 */
function fileOf(data: unknown, mimeType: unknown, name: string, keepFile: Keep): string | undefined {
  if (typeof data !== 'string') return undefined;
  // Some servers write a data URL.
  const [, inUrl, ofUrl] = /^data:([^,]{0,200}?)(?:;base64),(.*)$/s.exec(data) ?? [];
  const base64 = (ofUrl ?? data).replace(/\s+/g, '');
  if (base64 === '' || !/^[A-Za-z0-9+/_-]+={0,2}$/.test(base64)) return undefined;
  const given = typeof mimeType === 'string' ? essenceOf(mimeType) : '';
  const mediaType =
    [given, essenceOf(inUrl)].find((type) => /^[^\s/]+\/[^\s/]+$/.test(type)) ?? STANDARD_TYPE;
  return keepFile({ name, mediaType, base64: base64.replaceAll('-', '+').replaceAll('_', '/') });
}

const STANDARD_TYPE = 'application/octet-stream';

/** Names unreadable content, and quotes it. */
function odd(what: string, value: unknown): string {
  const json = JSON.stringify(value) as string | undefined;
  if (json === undefined) return `[${what}]`;
  return `[${what}: ${json.length > MAX_ODD ? `${json.slice(0, MAX_ODD)}…` : json}]`;
}

/** A file item without most of its data. */
const cutItem = (item: JsonObject): JsonObject =>
  Object.fromEntries(
    Object.entries(item).map(([key, value]) => [
      key,
      typeof value === 'string' ? value.slice(0, 100) : value,
    ]),
  );

/** Gives a file without a name one with the extension of its type. */
function named(file: ToolFile, name: string): ToolFile {
  const [ending] = /(?<=\/)[a-z0-9]+/.exec(file.mediaType) ?? [];
  return { ...file, name: file.name || (ending === undefined ? name : `${name}.${ending}`) };
}

/** Keeps a file if there is room. @returns the text about the file for the model */
function keepFile(files: ToolFile[], file: ToolFile, max: number): string {
  const bytes = [...files, file].reduce((sum, { base64 }) => sum + sizeOf(base64), 0);
  const what = `${file.mediaType}, ${sizeOf(file.base64)} bytes`;
  if (bytes > max) return `[file ${file.name} (${what}) left out: too large]`;
  files.push(file);
  return `[file ${file.name} (${what}): the user has been given it]`;
}

const sizeOf = (base64: string): number => Buffer.byteLength(base64, 'base64');

function cut(text: string, limit: number): string {
  if (text.length <= limit) return text;
  const start = firstCharacters(text, limit);
  return `${start}\n[cut off: these are the first ${start.length} of ${text.length} characters]`;
}

/** Whether a text equals the structured content. Some servers wrap values that are no objects: `{"result": 3}` beside the text `3`. */
function tells(text: string, structured: unknown): boolean {
  if (isSameJson(text, structured)) return true;
  if (!isJsonObject(structured) || Object.keys(structured).join() !== 'result') return false;
  return text === structured.result || isSameJson(text, structured.result);
}

function isSameJson(text: string, value: unknown): boolean {
  if (!/^\s*[[{"\dtfn-]/.test(text) || jsonExcess(text)) return false;
  try {
    // oxlint-disable-next-line no-restricted-properties -- bounded above
    return isDeepStrictEqual(JSON.parse(text), value);
  } catch {
    return false;
  }
}

/** Maximum length of a function name that every provider accepts. */
const MAX_LENGTH = 64;
/** Hexadecimal digits that distinguish shortened names: 16 million values for some hundred tools. */
const DIGEST_LENGTH = 6;

const OWN_NAMES = new Set([READ_RESULT, READ_RESOURCE]);

/** A tool, by its server's name in the definition and its own name at the server. */
export interface NamedTool {
  server: string;
  tool: string;
}

/**
 * The names of the tools for the model: `server_tool` of letters, digits, `_` and `-`, at most 64 characters, and
 * unique, and none is that of a tool of Baton's own. They depend only on the given names, so that a later turn on another worker calls the same tool.
 */
export function namesForModel(tools: readonly NamedTool[]): string[] {
  const plain = tools.map(({ server, tool }) => `${server}_${tool}`.replace(/[^A-Za-z0-9_-]/g, '_'));
  const times = new Map<string, number>();
  for (const name of plain) times.set(name, (times.get(name) ?? 0) + 1);
  return tools.map((tool, i) => {
    const name = plain[i] ?? '';
    const isFine = name.length <= MAX_LENGTH && times.get(name) === 1 && !OWN_NAMES.has(name);
    return isFine ? name : `${name.slice(0, MAX_LENGTH - DIGEST_LENGTH - 1)}_${digest(tool)}`;
  });
}

const digest = ({ server, tool }: NamedTool): string =>
  createHash('sha256').update(`${server}\0${tool}`).digest('hex').slice(0, DIGEST_LENGTH);
