/** Names of tools as a definition lists them, `*` standing for any characters; `all` = every name. */
export type NamePatterns = readonly string[] | 'all';

/** Whether one of the patterns fits the whole name. */
export function fits(patterns: NamePatterns | undefined, name: string): boolean {
  if (patterns === undefined) return false;
  return patterns === 'all' || patterns.some((pattern) => fitsOne(pattern, name));
}

// Piece by piece: a regular expression made of many stars can take for ever.
function fitsOne(pattern: string, name: string): boolean {
  const [first = '', ...rest] = pattern.split('*');
  if (rest.length === 0) return name === pattern;
  const last = rest.pop() ?? '';
  if (!name.startsWith(first)) return false;
  let from = first.length;
  for (const piece of rest) {
    const at = name.indexOf(piece, from);
    if (at < 0) return false;
    from = at + piece.length;
  }
  return name.length - last.length >= from && name.endsWith(last);
}
