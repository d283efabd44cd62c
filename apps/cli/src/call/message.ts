import { dataPart, type Message, type Part, Role, textPart } from '@baton/a2a';
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { basename, extname } from 'node:path';
import { jsonOption } from '../json-option.js';
import { UsageError } from '../usage-error.js';

/** The parts of a message, from the options of a command. */
export interface MessageOptions {
  /** The task that it continues. */
  task?: string;
  /** The conversation that it belongs to. */
  context?: string;
  /** Paths of files to attach. */
  file?: string[];
  /** A JSON object to attach. */
  data?: string;
  /** A JSON object. */
  metadata?: string;
}

/** A message of a user, to send. Throws UsageError for a file that cannot be read, and for text that is no JSON object. */
export function messageOf(text: string, options: MessageOptions): Message {
  const { task, context, file: files = [], data, metadata } = options;
  const attached = data === undefined ? [] : [dataPart(jsonOption('--data', data))];
  const message = userMessage([textPart(text), ...attached, ...files.map(fileOf)], task, context);
  return metadata === undefined ? message : { ...message, metadata: jsonOption('--metadata', metadata) };
}

/** A message of a user with these parts. @param task the task that it continues @param context its conversation */
export const userMessage = (parts: Part[], task = '', context = ''): Message => ({
  messageId: randomUUID(),
  contextId: context,
  taskId: task,
  role: Role.ROLE_USER,
  parts,
  metadata: undefined,
  extensions: [],
  referenceTaskIds: [],
});

/** Types that models take. */
const TYPES: Readonly<Record<string, string>> = {
  '.csv': 'text/csv',
  '.gif': 'image/gif',
  '.html': 'text/html',
  '.jpeg': 'image/jpeg',
  '.jpg': 'image/jpeg',
  '.json': 'application/json',
  '.md': 'text/markdown',
  '.mp3': 'audio/mpeg',
  '.pdf': 'application/pdf',
  '.png': 'image/png',
  '.txt': 'text/plain',
  '.wav': 'audio/wav',
  '.webp': 'image/webp',
  '.xml': 'application/xml',
};

function fileOf(path: string): Part {
  try {
    const mediaType = TYPES[extname(path).toLowerCase()] ?? 'application/octet-stream';
    const content = { $case: 'raw', value: readFileSync(path) } as const;
    return { content, filename: basename(path), mediaType, metadata: undefined };
  } catch (error) {
    const { code = String(error) } = error as NodeJS.ErrnoException;
    throw new UsageError(`--file: ${path} cannot be read (${code}): give the path of a file.`);
  }
}
