import { parseExpiry, parseScopes } from './tokens.js';

describe('--scopes', () => {
  it('is a list with commas', () => {
    expect(parseScopes('agents:call, tasks:read,agents:call')).toEqual(['agents:call', 'tasks:read']);
  });

  it.each(['agents', 'agents:call,root', '', ','])('refuses "%s" and lists the scopes', (text) =>
    expect(() => parseScopes(text)).toThrow(/choose from agents:call, tasks:read, .*, admin\.$/),
  );
});

const NOW = new Date('2026-11-20T10:00:00.000Z');
const expiry = (text: string) => parseExpiry(text, NOW).toISOString();

describe('the expiry of a token', () => {
  it.each([
    ['30d', '2026-12-20T10:00:00.000Z'],
    ['12h', '2026-11-20T22:00:00.000Z'],
    ['45m', '2026-11-20T10:45:00.000Z'],
  ])('%s counts from now', (text, at) => expect(expiry(text)).toBe(at));

  it('takes a day to its end', () => {
    expect(expiry('2026-12-31')).toBe('2026-12-31T23:59:59.999Z');
    expect(expiry('2026-11-20')).toBe('2026-11-20T23:59:59.999Z');
  });

  it.each([
    '',
    '30',
    'd',
    '1.5d',
    '-1d',
    '30 d',
    '1w',
    '999999d',
    'tomorrow',
    '2026-02-30',
    '2026-13-01',
    '2026-1-1',
  ])('refuses "%s" and says which forms there are', (text) =>
    expect(() => expiry(text)).toThrow(/neither a duration nor a day: give .*30d.*2026-12-31\.$/),
  );

  it.each(['0d', '0m', '2026-11-19'])('refuses "%s", which has passed', (text) =>
    expect(() => expiry(text)).toThrow(/is not in the future/),
  );
});
