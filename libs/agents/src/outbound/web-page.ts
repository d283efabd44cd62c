/**
 * Whether an answer is a page for people, such as that of a sign-in or of a proxy.
 * @param text the beginning of its body
 * @param mediaType from its header; undefined: there is none
 */
export const isWebPage = (text: string, mediaType = ''): boolean =>
  /html/i.test(mediaType) || /^\s*<(!doctype html|html|head|body)\b/i.test(text.slice(0, 1_000));

/** The title of a page, empty if it has none. */
export const titleOf = (page: string): string => /<title[^<>]*>([^<]*)/i.exec(page)?.[1] ?? '';
