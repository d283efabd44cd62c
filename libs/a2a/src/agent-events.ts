import type { Artifact, Message, Task } from './model.js';

/**
 * Metadata of an artifact that is not part of the agent's reply: what it is instead. `tool-call` has one data
 * part `{tool, ok}`, `agent-reply` (of an agent it has called) one data part `{agent, depth, content}`; any
 * other name is the agent's own.
 */
export const EVENT_KIND = 'baton.event';
/** Metadata of a status, kept on the task: tokens used for the whole task so far, `{inputTokens, outputTokens}`. */
export const USAGE = 'baton.usage';

/** What an artifact is if it is not part of the reply. */
export function eventKindOf({ metadata }: Pick<Artifact, 'metadata'>): string | undefined {
  const kind: unknown = metadata?.[EVENT_KIND];
  return typeof kind === 'string' && kind !== '' ? kind : undefined;
}

/** Tokens an agent has used for a task; 0 as long as it has not said. */
export function tokenUsage(metadata: Task['metadata']): { input: number; output: number } {
  const usage: unknown = metadata?.[USAGE];
  const { inputTokens, outputTokens } = (typeof usage === 'object' && usage !== null ? usage : {}) as Record<
    string,
    unknown
  >;
  return { input: countOf(inputTokens), output: countOf(outputTokens) };
}

const countOf = (value: unknown): number => (Number.isSafeInteger(value) ? Math.max(0, value as number) : 0);

/** The text of parts, put together. */
export const textOf = (parts: Message['parts']): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
