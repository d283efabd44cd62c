import type { ToolResultPart, UserModelMessage } from 'ai';
import { apiOf, type ModelFields, splitModel } from './llm-config.js';
import type { ToolFile } from './tools/tool-sources.js';

/** Where a model reads a file of a tool: in the result of the call, or in a message after the results. */
type FilePlace = 'result' | 'message';

/** The media types that a model reads, by their place. */
export type FileForms = Readonly<Partial<Record<FilePlace, readonly string[]>>>;

const IMAGES = ['image/png', 'image/jpeg', 'image/gif', 'image/webp'];
const PDF = 'application/pdf';
const GEMINI: FileForms = {
  result: ['image/png', 'image/jpeg', 'image/webp', PDF],
  // No result of a function takes sound.
  message: ['wav', 'x-wav', 'mp3', 'mpeg', 'aiff', 'aac', 'ogg', 'flac'].map((type) => `audio/${type}`),
};

/** What an interface takes if its model does. In chat completions the result of a call is a text. */
const OF_API: Readonly<Record<string, FileForms>> = {
  'openai/responses': { result: [...IMAGES, PDF] },
  'openai/chat': { message: [...IMAGES, PDF] },
  'openai-compatible/chat': { message: IMAGES },
  anthropic: { result: [...IMAGES, PDF] },
  google: GEMINI,
};

/** Models that read files, and what they read of it if it is not all. The first row that matches counts. */
const MODELS: readonly { provider: string; name: RegExp; only?: readonly string[] }[] = [
  { provider: 'openai', name: /(^|\/)(gpt-3|gpt-4(-\d{4})?$|gpt-oss|o1-(mini|preview)|o3-mini)/, only: [] },
  { provider: 'openai', name: /(^|\/)(gpt-\d|o\d|chatgpt)/ },
  { provider: 'anthropic', name: /claude-(instant|v?2)/, only: [] },
  { provider: 'anthropic', name: /claude-3-(opus|sonnet|haiku)/, only: IMAGES },
  { provider: 'anthropic', name: /claude-/ },
  { provider: 'google', name: /gemini-.*(tts|embedding)/, only: [] },
  { provider: 'google', name: /gemini-/ },
];

/** The files that a model is shown. Without a row for a model, it is unknown whether the model accepts any. */
export function fileFormsOf(settings: Pick<ModelFields, 'model' | 'api' | 'toolFiles'>): FileForms {
  const { toolFiles = 'auto' } = settings;
  const { provider, name } = splitModel(settings.model);
  const forms = OF_API[`${provider}/${apiOf(settings)}`] ?? OF_API[provider] ?? {};
  if (toolFiles === 'off') return {};
  if (toolFiles === 'on') return forms;
  const row = MODELS.find((each) => each.provider === provider && each.name.test(name));
  if (!row) return {};
  const { only } = row;
  if (!only) return forms;
  const within = (types: readonly string[] = []): string[] => types.filter((type) => only.includes(type));
  return { result: within(forms.result), message: within(forms.message) };
}

/** A file as a model is shown it. */
export interface ShownFile extends ToolFile {
  place: FilePlace;
}

/** The files of a result at one position. */
export const placed = (files: readonly (ShownFile | undefined)[] = [], place: FilePlace): ShownFile[] =>
  files.filter((file) => file !== undefined).filter((file) => file.place === place);

const SIGNATURES: readonly [string, RegExp][] = [
  ['image/png', /^\x89PNG\r\n/],
  ['image/jpeg', /^\xff\xd8\xff/],
  ['image/gif', /^GIF8[79]a/],
  ['image/webp', /^RIFF[^]{4}WEBP/],
  [PDF, /^%PDF-/],
];

/** The media type of a file. A provider refuses a request if the type of a file differs from its name. */
export function typeOf({ mediaType, base64 }: ToolFile): string {
  const head = Buffer.from(base64.slice(0, 24), 'base64').toString('latin1');
  const found = SIGNATURES.find(([, signature]) => signature.test(head))?.[0];
  const isClaimed = SIGNATURES.some(([type]) => type === mediaType) || mediaType === 'image/jpg';
  return found ?? (isClaimed ? '' : mediaType);
}

type ContentOutput = Extract<ToolResultPart['output'], { type: 'content' }>;
type ContentItem = ContentOutput['value'][number];

/** A file in the result of a call. */
export const fileItem = ({ name, mediaType, base64 }: ToolFile): ContentItem =>
  mediaType.startsWith('image/')
    ? { type: 'image-data', data: base64, mediaType }
    : { type: 'file-data', data: base64, mediaType, filename: name };

type UserPart = Exclude<UserModelMessage['content'], string>[number];

/** The files of a result in a message after it. */
export function filesMessage(id: string, files: readonly ShownFile[]): UserPart[] {
  const parts = files.map(({ name, mediaType, base64 }): UserPart => {
    // A plain Uint8Array, because JSON of a Buffer is a list of numbers.
    const data = new Uint8Array(Buffer.from(base64, 'base64'));
    return mediaType.startsWith('image/')
      ? { type: 'image', image: data, mediaType }
      : { type: 'file', data, mediaType, filename: name };
  });
  const names = files.map(({ name }) => name).join(', ');
  return [{ type: 'text', text: `[Files of the tool result ${id}, not of the user: ${names}]` }, ...parts];
}

/** Whether messages have files of tools. */
export const hasToolFiles = (messages: readonly { role: string; content: unknown }[]): boolean =>
  messages.some(
    ({ role, content }) =>
      (role === 'tool' && outputsOf(content).some(({ type }) => type === 'content')) ||
      (role === 'user' && textsOf(content).some((text) => text.startsWith('[Files of the tool result '))),
  );

const outputsOf = (content: unknown): { type: string }[] =>
  (content as { output?: { type: string } }[]).flatMap(({ output }) => (output ? [output] : []));

const textsOf = (content: unknown): string[] =>
  Array.isArray(content) ? (content as { text?: string }[]).map(({ text = '' }) => text) : [];

/** A content item without the data of its file, to count its characters. */
export function withoutFile(value: unknown): unknown {
  if (!isFileItem(value)) return value;
  const { data: _, ...rest } = value;
  return rest;
}

/** Whether it is a file in the result of a call. */
export const isFileItem = (value: unknown): value is { type: string; data: string } =>
  typeof value === 'object' &&
  value !== null &&
  'type' in value &&
  (value.type === 'image-data' || value.type === 'file-data') &&
  'data' in value;
