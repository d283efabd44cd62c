/** Pieces of a text: those that were searched for, in upper or lower case, and those between them. */
export function hitsOf(text: string, searched = ''): { part: string; isHit: boolean }[] {
  const wanted = searched.trim();
  if (wanted === '') return [{ part: text, isHit: false }];
  // White space of the message is shown as one space.
  const words = wanted.split(/\s+/).map((word) => word.replaceAll(/[\\^$.*+?()[\]{}|]/g, String.raw`\$&`));
  const pieces = text.split(new RegExp(`(${words.join(String.raw`\s+`)})`, 'iu'));
  return pieces.flatMap((part, i) => (part === '' ? [] : [{ part, isHit: i % 2 === 1 }]));
}
