import { joinTexts, type Part } from '@baton/a2a';

/** One piece of a resource of MCP. */
export interface ResourceContent {
  uri: string;
  mimeType: string;
  text?: string;
  blob?: string;
  _meta?: Record<string, string>;
}

/** The address of an artifact. */
export const artifactUri = (taskId: string, artifactId: string): string =>
  `baton://tasks/${taskId}/artifacts/${encodeURIComponent(artifactId)}`;

/** Parts as the contents of a resource. There is always one. */
export function resourceContents(parts: readonly Part[], uri: string): ResourceContent[] {
  const contents = joinTexts(parts).map((part) => resourceContent(part, uri));
  return contents.length > 0 ? contents : [{ uri, mimeType: 'text/plain', text: '' }];
}

/** A part as the content of a resource. */
export function resourceContent({ content, mediaType }: Part, uri: string): ResourceContent {
  switch (content?.$case) {
    case 'raw': {
      const mimeType = mediaType || 'application/octet-stream';
      const text = isText(mimeType) ? utf8(content.value) : undefined;
      if (text !== undefined) return { uri, mimeType, text };
      return { uri, mimeType, blob: content.value.toString('base64') };
    }
    case 'data':
      return { uri, mimeType: 'application/json', text: JSON.stringify(content.value ?? null) };
    default:
      return { uri, mimeType: 'text/plain', text: content?.value ?? '' };
  }
}

const isText = (mimeType: string): boolean => /^(text\/|application\/(json|xml|yaml)\b)/.test(mimeType);

/** Models read no base64. */
function utf8(bytes: Buffer): string | undefined {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(bytes);
  } catch {
    return undefined;
  }
}
