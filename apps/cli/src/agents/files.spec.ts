import { diffLines } from './files.js';

const text = (...lines: string[]): string => lines.map((line) => `${line}\n`).join('');

describe('the difference of two texts', () => {
  it('is nothing where they are the same', () => {
    expect(diffLines(text('a', 'b'), text('a', 'b'))).toEqual([]);
    expect(diffLines('', '')).toEqual([]);
  });

  it('shows removed and added lines, with a few lines around them', () => {
    const before = text('1', '2', '3', '4', 'model: a', '6', '7', '8', '9');
    const after = text('1', '2', '3', '4', 'model: b', '6', '7', '8', '9', '10');
    expect(diffLines(before, after)).toEqual([
      '…',
      '  3',
      '  4',
      '- model: a',
      '+ model: b',
      '  6',
      '  7',
      '  8',
      '  9',
      '+ 10',
    ]);
  });

  it('keeps common lines, however much is moved, and is whole for a new text', () => {
    expect(diffLines(text('a', 'b', 'c'), text('c', 'a', 'b'))).toEqual(['+ c', '  a', '  b', '- c']);
    expect(diffLines('', text('a', 'b'))).toEqual(['+ a', '+ b']);
    expect(diffLines(text('a'), '')).toEqual(['- a']);
  });
});
