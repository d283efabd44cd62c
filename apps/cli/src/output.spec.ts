import { formatTable, formatTime, oneLine, printable } from './output.js';

describe('output', () => {
  it('aligns columns and leaves nothing at the end of a line', () => {
    const rows = [
      ['demo', 'echo', ''],
      ['a-long-slug', 'x', 'yes'],
    ];
    expect(formatTable(['slug', 'agent', 'default'], rows).split('\n')).toEqual([
      'SLUG         AGENT  DEFAULT',
      'demo         echo',
      'a-long-slug  x      yes',
    ]);
  });

  it('lets nobody drive the terminal from a name or an answer', () => {
    expect(printable('\u001b[2Jgone\u0007\u009b31m\r')).toBe('[2Jgone31m');
    expect(printable('two\nlines\tand a tab')).toBe('two\nlines\tand a tab');
    expect(formatTable(['name'], [['one\ntwo']])).toBe('NAME\none two');
  });

  it('shortens a long line', () => expect(oneLine('12345678', 5)).toBe('1234…'));

  it('shows times to the minute, in UTC', () => {
    expect(formatTime(new Date('2026-12-31T23:59:59.999Z'))).toBe('2026-12-31 23:59');
    expect(formatTime(null)).toBe('-');
  });
});
