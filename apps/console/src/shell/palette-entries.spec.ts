import { matching, type PaletteEntry } from './palette-entries';

const entry = (label: string, hint?: string): PaletteEntry => ({
  kind: 'Page',
  label,
  to: `/${label}`,
  ...(hint !== undefined && { hint }),
});
const ENTRIES = [
  entry('Dead letters'),
  entry('Tasks'),
  entry('Find a task'),
  entry('trip-planner', 'Plans trips'),
];
const labels = (text: string, max = 10): string[] => matching(ENTRIES, text, max).map(({ label }) => label);

describe('what the palette finds', () => {
  it('has every word, in any order and case, in its label or hint', () => {
    expect(labels('LETTERS dead')).toEqual(['Dead letters']);
    expect(labels('plans trip')).toEqual(['trip-planner']);
    expect(labels('dead tasks')).toEqual([]);
  });

  it('begins with the text, first of all', () => {
    expect(labels('ta')).toEqual(['Tasks', 'Find a task']);
    expect(labels('task')).toEqual(['Tasks', 'Find a task']);
  });

  it('is everything without a text, and never more than asked for', () => {
    expect(labels('  ')).toEqual(ENTRIES.map(({ label }) => label));
    expect(labels('', 2)).toEqual(['Dead letters', 'Tasks']);
  });
});
