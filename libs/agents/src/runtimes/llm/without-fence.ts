const FENCE = '```';

/** Removes a code fence, which some models add. It runs in linear time, because the text may be hostile. */
export function withoutFence(text: string): string {
  if (!text.startsWith(FENCE) || !text.endsWith(FENCE)) return text;
  const lineEnd = text.indexOf('\n');
  const language = text.slice(FENCE.length, Math.max(lineEnd, FENCE.length)).trim();
  if (lineEnd < 0 || lineEnd > text.length - FENCE.length || !['', 'json'].includes(language)) return text;
  return text.slice(lineEnd + 1, -FENCE.length).trim();
}
