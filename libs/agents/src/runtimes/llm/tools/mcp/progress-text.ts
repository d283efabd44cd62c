/** Maximum characters of a progress message. */
export const MAX_MESSAGE = 1_000;

/** The text of `notifications/progress`: its message, or else its numbers. Undefined: nothing. */
export function progressText(params: object): string | undefined {
  const { message, progress, total } = params as { message?: unknown; progress?: unknown; total?: unknown };
  if (typeof message === 'string' && message !== '') return message.slice(0, MAX_MESSAGE);
  if (!Number.isFinite(progress)) return undefined;
  return Number.isFinite(total) ? `${Number(progress)} of ${Number(total)}` : String(progress);
}
