import { charsetOf, decodeText, essenceOf, type Message, type Part } from '@baton/a2a';
import type { UserModelMessage } from 'ai';
import { type OutboundCalls, failureReason } from '@baton/outbound';
import { AgentFailure } from './agent-failure.js';
import { TEXT_MEDIA_TYPE } from './text-media-type.js';

type UserContentPart = Exclude<UserModelMessage['content'], string>[number];

/** Providers take requests of 20 to 32 MB. */
const MAX_FILE_BYTES = 20 * 1024 * 1024;
/** The largest file arrives in this time on a connection of 6 Mbit/s. */
const FILE_TIMEOUT_MS = 30_000;
/** Maximum files at URLs that one turn reads. */
const MAX_FILES = 20;
/** Their total size. Base64 makes it larger by a third in the memory of the worker. */
const MAX_FILES_BYTES = 40 * 1024 * 1024;
/** A few at a time: the caller of the task chooses their hosts. */
const FILES_AT_ONCE = 3;
const STANDARD_TYPE = 'application/octet-stream';

/** Stands for a message without text, data and files. Providers refuse blank messages. */
export const EMPTY_MESSAGE = '(an empty message)';

/** Converts messages of callers to prompts: text and data become text, files stay files. */
export class PromptReader {
  private files = 0;
  private bytes = 0;
  private readonly read = new Map<Message, Promise<UserModelMessage>>();

  constructor(private readonly outbound: OutboundCalls) {}

  /**
   * Downloads files at URLs once, through the outbound guard. Rejects with AgentFailure if that fails.
   * @param isEarlier an earlier turn has read the files: a file that is gone since then becomes a note for the model
   */
  prompt(message: Message, signal: AbortSignal, isEarlier = false): Promise<UserModelMessage> {
    let prompt = this.read.get(message);
    if (!prompt) {
      prompt = this.contentOf(message.parts, signal, isEarlier).then((content) => ({
        role: 'user',
        content,
      }));
      prompt.catch(() => undefined);
      this.read.set(message, prompt);
    }
    return prompt;
  }

  private async contentOf(
    parts: readonly Part[],
    signal: AbortSignal,
    isEarlier: boolean,
  ): Promise<UserContentPart[]> {
    const contents: (UserContentPart | undefined)[] = [];
    for (let i = 0; i < parts.length; i += FILES_AT_ONCE) {
      const some = parts.slice(i, i + FILES_AT_ONCE).map((part) => this.content(part, signal, isEarlier));
      contents.push(...(await Promise.all(some)));
    }
    const readable = contents.filter((content) => content !== undefined);
    return readable.length > 0 ? readable : [{ type: 'text', text: EMPTY_MESSAGE }];
  }

  private async content(
    part: Part,
    signal: AbortSignal,
    isEarlier: boolean,
  ): Promise<UserContentPart | undefined> {
    const { content, filename, mediaType } = part;
    switch (content?.$case) {
      case 'text':
        return content.value.trim() === '' ? undefined : { type: 'text', text: content.value };
      case 'data':
        return { type: 'text', text: JSON.stringify(content.value ?? null) };
      case 'raw':
        return file(content.value, mediaType, filename);
      case 'url':
        return this.fetched(content.value, mediaType, filename, signal).catch((error: unknown) => {
          const isGone = isEarlier && error instanceof AgentFailure && error.limit === undefined;
          if (!isGone) throw error;
          return { type: 'text' as const, text: `(a file that is gone: ${error.message})` };
        });
      case undefined:
        return undefined;
    }
  }

  private async fetched(url: string, mediaType: string, filename: string, signal: AbortSignal) {
    this.files += 1;
    if (this.files > MAX_FILES) {
      throw new AgentFailure(
        `The messages name more than ${MAX_FILES} files by URL: send fewer, or their text.`,
        { limit: 'files' },
      );
    }
    try {
      const maxBytes = Math.min(MAX_FILE_BYTES, MAX_FILES_BYTES - this.bytes);
      const fetch = this.outbound.fetchWithin({ maxBytes, timeoutMs: FILE_TIMEOUT_MS, limit: 'files' });
      const response = await fetch(url, { signal });
      if (!response.ok)
        throw new AgentFailure(`The file at ${hostOf(url)} cannot be read: ${response.status}.`);
      const type = typeOfFile(mediaType, response.headers.get('content-type') ?? '');
      const data = Buffer.from(await response.arrayBuffer());
      this.bytes += data.length;
      if (this.bytes > MAX_FILES_BYTES) {
        throw new AgentFailure(
          `The files at URLs have more than ${MAX_FILES_BYTES} bytes together: send fewer or smaller ones.`,
          { limit: 'files' },
        );
      }
      return file(data, type, filename);
    } catch (error) {
      if (error instanceof AgentFailure || signal.aborted) throw error;
      const reason = failureReason(error) ?? 'it broke off';
      throw new AgentFailure(`The file at ${hostOf(url)} cannot be read: ${reason}.`);
    }
  }
}

/** The media type that the sender gave a file counts. Its server may add the charset. */
function typeOfFile(given: string, served: string): string {
  const isSame = essenceOf(given) === essenceOf(served) && charsetOf(given) === undefined;
  return given === '' || isSame ? served : given;
}

function file(data: Buffer, mediaType: string, filename: string): UserContentPart {
  const type = essenceOf(mediaType);
  if (data.length === 0) return { type: 'text', text: `(an empty file${filename && `, ${filename}`})` };
  if (TEXT_MEDIA_TYPE.test(type)) {
    const text = decodeText(data, mediaType);
    const named = filename ? `${filename}:\n${text}` : text;
    return { type: 'text', text: named.trim() === '' ? '(a file of blanks)' : named };
  }
  // A plain Uint8Array, because JSON of a Buffer is a list of numbers.
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (type.startsWith('image/')) return { type: 'image', image: bytes, mediaType: type };
  return { type: 'file', data: bytes, mediaType: type || STANDARD_TYPE, ...(filename && { filename }) };
}

const hostOf = (url: string): string => URL.parse(url)?.host ?? 'that address';
