/** The text parts of a message, joined. */
export const textOf = ({ parts }: { parts: readonly { content?: unknown }[] }): string =>
  parts.map(({ content }) => textIn(content as { $case?: unknown; value?: unknown } | undefined)).join('');

const textIn = (content: { $case?: unknown; value?: unknown } | undefined): string =>
  content?.$case === 'text' ? String(content.value) : '';
