import fc from 'fast-check';
import { decodePageToken, encodePageToken } from './page-token.js';
import { refusalOf } from '../../../test/support/a2a/profile.js';

const forge = (value: unknown): string => Buffer.from(JSON.stringify(value)).toString('base64url');
const AT = '2026-01-31T12:00:00.123Z';
const ID = '0b0f6d0e-7b0f-4b4e-8a52-3a6c0d6f1b11';

describe('a page token', () => {
  it('gives back the position it was made of', () => {
    fc.assert(
      fc.property(
        fc.uuid(),
        fc.date({ min: new Date(0), max: new Date('9999-01-01'), noInvalidDate: true }),
        (taskId, statusAt) => {
          expect(decodePageToken(encodePageToken({ statusAt, taskId }))).toEqual({ statusAt, taskId });
        },
      ),
    );
  });

  it('is accepted in the form in which it is made', () => {
    expect(decodePageToken(forge([AT, ID]))).toEqual({ statusAt: new Date(AT), taskId: ID });
  });

  it.each([
    ['garbage', 'garbage!'],
    ['no JSON', Buffer.from('{').toString('base64url')],
    ['an object', forge({ statusAt: AT, taskId: ID })],
    ['no list', forge(null)],
    ['one more member', forge([AT, ID, 1])],
    ['SQL for an id', forge([AT, "' OR 1=1 --"])],
    ['an upper-case id', forge([AT, ID.toUpperCase()])],
    ['an id that is no text', forge([AT, 5])],
    ['a date that is none', forge(['2026-99-31T12:00:00.123Z', ID])],
    ['a date in another form', forge(['2026-01-31', ID])],
    ['a number for a date', forge([0, ID])],
    ['something endless', 'A'.repeat(10_000)],
  ])('is refused if it is %s', (_what, token) => {
    expect(refusalOf(() => decodePageToken(token))).toBe('pageToken');
  });
});
