import { parseScopes } from './tokens.js';

describe('--scopes', () => {
  it('is a list with commas', () => {
    expect(parseScopes('agents:call, tasks:read,agents:call')).toEqual(['agents:call', 'tasks:read']);
  });

  it.each(['agents', 'agents:call,root', '', ','])('refuses "%s" and lists the scopes', (text) =>
    expect(() => parseScopes(text)).toThrow(/choose from agents:call, tasks:read, .*, admin\.$/),
  );
});
