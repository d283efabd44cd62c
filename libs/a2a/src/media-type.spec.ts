import { charsetOf, decodeText, essenceOf, isEventStream, isJsonType } from './media-type.js';

describe('a media type', () => {
  it.each([
    ['IMAGE/PNG', 'image/png'],
    ['application/json; charset=utf-8', 'application/json'],
    [' Text/Plain ;format=flowed', 'text/plain'],
    ['', ''],
    [null, ''],
    [undefined, ''],
  ])('%j is compared as %j', (written, essence) => expect(essenceOf(written)).toBe(essence));

  it.each([
    ['text/plain; charset=UTF-16', 'utf-16'],
    ['text/plain; format=flowed; Charset="latin1"', 'latin1'],
    ['text/plain;charset = utf-8 ', 'utf-8'],
    ['text/plain; charset=', undefined],
    ['text/plain', undefined],
    ['charset=latin1', undefined],
  ])('%j has the charset %j', (written, charset) => expect(charsetOf(written)).toBe(charset));

  it.each([
    ['application/json', true],
    ['APPLICATION/JSON;charset=utf-8', true],
    ['application/problem+json', true],
    ['application/json-seq', false],
    ['text/html; a=application/json', false],
  ])('%j is JSON: %j', (written, expected) => expect(isJsonType(written)).toBe(expected));

  it('is that of a stream in capitals and with parameters', () => {
    expect([isEventStream('Text/Event-Stream;charset=UTF-8'), isEventStream('text/event-streams')]).toEqual([
      true,
      false,
    ]);
  });
});

describe('a text', () => {
  it.each([
    ['text/plain; charset=latin1', [0xe4]],
    ['text/plain; charset=utf-16le', [0xe4, 0x00]],
    ['text/plain; charset=utf-16', [0xff, 0xfe, 0xe4, 0x00]],
    ['text/plain; charset=utf-16', [0xfe, 0xff, 0x00, 0xe4]],
    ['text/plain; charset=utf-8', [0xc3, 0xa4]],
    ['text/plain', [0xef, 0xbb, 0xbf, 0xc3, 0xa4]],
    ['text/plain; charset=there-is-no-such', [0xc3, 0xa4]],
  ])('of type %j is decoded in its charset: %j', (mediaType, bytes) =>
    expect(decodeText(Uint8Array.from(bytes), mediaType)).toBe('ä'),
  );

  it('of windows-1252, by any of its names, has its quotes, dashes and the euro', () => {
    for (const charset of ['windows-1252', 'cp1252', 'iso-8859-1']) {
      const bytes = Uint8Array.from([0x93, 0x80, 0x94, 0x20, 0x96, 0x20, 0xe4, 0x9f, 0x81]);
      expect(decodeText(bytes, `text/plain; charset=${charset}`)).toBe(
        '\u201c\u20ac\u201d \u2013 ä\u0178\x81',
      );
    }
  });
});
