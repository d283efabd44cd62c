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

  it('lets no name and no answer control the terminal', () => {
    expect(printable('\u001b[2Jgone\u0007\u009b31m\r')).toBe('[2Jgone31m');
    expect(printable('{"to":"\u202e"moc.live":"')).toBe('{"to":""moc.live":"');
    expect(printable('two\nlines\tand a tab')).toBe('two\nlines\tand a tab');
    expect(formatTable(['name'], [['one\ntwo']])).toBe('NAME\none two');
  });

  it('shortens a long line', () => expect(oneLine('12345678', 5)).toBe('1234…'));

  it.each(['2026-12-31T23:59:59.999Z', '2026-07-01T00:00:00.000Z'])(
    'shows %s to the second, as a time of this machine with its zone',
    (text) => {
      const time = new Date(text);
      const shown = formatTime(time);
      expect(shown).toMatch(/^202[67]-\d\d-\d\d \d\d:\d\d:\d\d [+-]\d\d:\d\d$/);
      expect(new Date(shown).getTime()).toBe(Math.floor(time.getTime() / 1000) * 1000);
      expect(Number(shown.slice(11, 13))).toBe(time.getHours());
      expect(formatTime(null)).toBe('-');
    },
  );

  it.each([
    [-330, '2026-12-31 05:30:00 +05:30'],
    [210, '2026-12-30 20:30:00 -03:30'],
    [0, '2026-12-31 00:00:00 +00:00'],
  ])('shows a time of a zone %s minutes from UTC', (offset, shown) => {
    const time = new Date('2026-12-31T00:00:00Z');
    time.getTimezoneOffset = () => offset;
    expect(formatTime(time)).toBe(shown);
  });
});
