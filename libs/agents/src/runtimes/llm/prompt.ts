import { type Message, type Part, Role } from '@baton/a2a';
import type { UserModelMessage } from 'ai';
import { failureReason } from '../../outbound/failure-reason.js';
import type { Outbound } from '../../outbound/outbound.js';
import { AgentFailure } from './agent-failure.js';

type Content = Exclude<UserModelMessage['content'], string>[number];

const MAX_FILE_BYTES = 20 * 1024 * 1024;
const FILE_TIMEOUT_MS = 30_000;
/** Types whose bytes are text that every model reads. */
const TEXT = /^(text\/.*|application\/(json|xml|yaml|x-yaml|javascript|.*\+(json|xml)))$/;
const STANDARD_TYPE = 'application/octet-stream';

/** A message of a caller as a model takes it: text and data as text, files as they are. */
export class PromptReader {
  private readonly read = new Map<Message, Promise<UserModelMessage>>();

  constructor(private readonly outbound: Pick<Outbound, 'fetchWithin'>) {}

  /** Files at a URL are read through the guarded way out, and once. Rejects with AgentFailure where that fails. */
  prompt(message: Message, signal: AbortSignal): Promise<UserModelMessage> {
    let prompt = this.read.get(message);
    if (!prompt) {
      prompt = this.contentOf(message.parts, signal).then((content) => ({ role: 'user', content }));
      prompt.catch(() => undefined);
      this.read.set(message, prompt);
    }
    return prompt;
  }

  private async contentOf(parts: readonly Part[], signal: AbortSignal): Promise<Content[]> {
    const contents = await Promise.all(parts.map((part) => this.content(part, signal)));
    const said = contents.filter((content) => content !== undefined);
    return said.length > 0 ? said : [{ type: 'text', text: '(an empty message)' }];
  }

  private async content(part: Part, signal: AbortSignal): Promise<Content | undefined> {
    const { content, filename, mediaType } = part;
    switch (content?.$case) {
      case 'text':
        return content.value === '' ? undefined : { type: 'text', text: content.value };
      case 'data':
        return { type: 'text', text: JSON.stringify(content.value ?? null) };
      case 'raw':
        return file(content.value, mediaType, filename);
      case 'url':
        return this.fetched(content.value, mediaType, filename, signal);
      case undefined:
        return undefined;
    }
  }

  private async fetched(url: string, mediaType: string, filename: string, signal: AbortSignal) {
    try {
      const fetch = this.outbound.fetchWithin({ maxBytes: MAX_FILE_BYTES, timeoutMs: FILE_TIMEOUT_MS });
      const response = await fetch(url, { signal });
      if (!response.ok)
        throw new AgentFailure(`The file at ${hostOf(url)} can not be read: ${response.status}.`);
      const type = mediaType || (response.headers.get('content-type')?.split(';')[0]?.trim() ?? '');
      return file(Buffer.from(await response.arrayBuffer()), type, filename);
    } catch (error) {
      if (error instanceof AgentFailure || signal.aborted) throw error;
      const reason = failureReason(error) ?? 'it broke off';
      throw new AgentFailure(`The file at ${hostOf(url)} can not be read: ${reason}.`);
    }
  }
}

function file(data: Buffer, mediaType: string, filename: string): Content {
  if (TEXT.test(mediaType)) {
    const text = data.toString('utf8');
    return { type: 'text', text: filename ? `${filename}:\n${text}` : text };
  }
  // Not the Buffer itself: as JSON it would be a list of numbers.
  const bytes = new Uint8Array(data.buffer, data.byteOffset, data.byteLength);
  if (mediaType.startsWith('image/')) return { type: 'image', image: bytes, mediaType };
  return { type: 'file', data: bytes, mediaType: mediaType || STANDARD_TYPE, ...(filename && { filename }) };
}

const hostOf = (url: string): string => (URL.canParse(url) ? new URL(url).host : 'that address');

/** The text of a message or artifact for a model that is reminded of it: files by their names alone. */
export function recalled(parts: readonly Part[]): string {
  const texts = parts.map(({ content, filename, mediaType }) => {
    if (content?.$case === 'text') return content.value;
    if (content?.$case === 'data') return JSON.stringify(content.value ?? null);
    return content ? `(a file${filename && `, ${filename}`}${mediaType && `, ${mediaType}`})` : '';
  });
  // Chunks of a streamed text belong together as they are.
  return parts.every(({ content }) => content?.$case === 'text') ? texts.join('') : texts.join('\n').trim();
}

export const isUsers = ({ role }: Message): boolean => role === Role.ROLE_USER;
