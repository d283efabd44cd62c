import fc from 'fast-check';
import { jsonPart, plainTextPart } from '../../agent-runtime.js';
import { userMessage } from '../../../../../test/support/agents/turns.js';
import { echoParts, textOfBytes } from './echo-parts.js';

const size = fc.integer({ min: 1, max: 400 });

describe('the text of an echoed chunk', () => {
  it('has the size asked for, whatever the text, and never a cut character', () => {
    const text = fc.string({ unit: 'binary', minLength: 1 });
    fc.assert(
      fc.property(text, size, (sent, bytes) => {
        const chunk = textOfBytes(sent, bytes);
        expect(Buffer.byteLength(chunk)).toBeLessThanOrEqual(bytes);
        expect(Buffer.byteLength(chunk)).toBeGreaterThan(bytes - 4);
        // Well-formed text survives UTF-8; half a character would come back as U+FFFD.
        expect(Buffer.from(chunk).toString()).toBe(chunk);
      }),
    );
  });

  it('is the text over and over', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', minLength: 1 }), size, (sent, bytes) => {
        const chunk = textOfBytes(sent, bytes);
        expect(sent.repeat(chunk.length + 1).startsWith(chunk)).toBe(true);
      }),
    );
    expect(textOfBytes('abc', 7)).toBe('abcabca');
    expect(textOfBytes('hello', 2)).toBe('he');
    expect(textOfBytes('', 10)).toBe('');
  });

  it('takes text with lone surrogates as it is', () => {
    const units = fc.array(fc.constantFrom('\ud83d', '\ude00', 'a', '€'), { minLength: 1 });
    fc.assert(
      fc.property(units, size, (chosen, bytes) => {
        const chunk = textOfBytes(chosen.join(''), bytes);
        expect(Buffer.byteLength(chunk)).toBeLessThanOrEqual(bytes);
        expect(Buffer.byteLength(chunk)).toBeGreaterThan(bytes - 4);
      }),
    );
  });
});

describe('the parts of an echoed chunk', () => {
  const message = userMessage([plainTextPart('ab'), jsonPart({ a: 1 }), plainTextPart('c')]);

  it('are those of the message when no size is asked for', () => {
    expect(echoParts(message, undefined)).toBe(message.parts);
  });

  it('keep what is not text beside the text that is cut', () => {
    expect(echoParts(message, 4)).toEqual([plainTextPart('abca'), jsonPart({ a: 1 })]);
  });

  it('are not cut when there is no text', () => {
    expect(echoParts(userMessage([jsonPart(1)]), 4)).toEqual([jsonPart(1)]);
  });
});
