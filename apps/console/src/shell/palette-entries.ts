/** Something that the palette leads to. */
export interface PaletteEntry {
  /** Its kind, such as "Page". */
  kind: string;
  label: string;
  /** More about it, such as the state of a task. */
  hint?: string;
  /** The path below `/console`. */
  to: string;
  search?: Record<string, string>;
}

const words = (text: string): string[] => text.toLowerCase().split(/\s+/).filter(Boolean);

/**
 * The entries that have every word of the text in their label or hint, in their order. Those whose label begins with the text come first.
 * @param max how many at most
 */
export function matching(entries: readonly PaletteEntry[], text: string, max: number): PaletteEntry[] {
  const wanted = words(text);
  const start = text.trim().toLowerCase();
  const found = entries.filter(({ label, hint = '' }) => {
    const content = `${label} ${hint}`.toLowerCase();
    return wanted.every((word) => content.includes(word));
  });
  const isFirst = ({ label }: PaletteEntry): boolean => start !== '' && label.toLowerCase().startsWith(start);
  return [...found.filter(isFirst), ...found.filter((entry) => !isFirst(entry))].slice(0, max);
}
