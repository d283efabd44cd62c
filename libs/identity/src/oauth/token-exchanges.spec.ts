import { SubjectToken } from '@baton/a2a';
import { Logger } from '@baton/telemetry';
import { TokenExchanges } from './token-exchanges.js';

const issuer = 'https://id.example.com';
const settings = { credentials: 'exchange', issuer, clientId: 'baton', clientSecret: 'desk' } as const;
const caller = (of = issuer) => ({
  tenantId: 'acme',
  by: { kind: 'user' as const, key: 'user:ada' },
  subject: new SubjectToken(of, 'sesame'),
  taskId: null,
});
const target = (more: object = {}) => ({
  url: 'https://crm.example.com/mcp',
  settings: { ...settings, ...more },
});

/** The looks at sign-ins, which come before everything else. */
function exchangesWith(isUsable: () => Promise<boolean>) {
  const looks: unknown[] = [];
  const connections = {
    isUsable: (key: unknown) => {
      looks.push(key);
      return isUsable();
    },
  };
  return { looks, exchanges: new TokenExchanges(connections as never, {} as never, Logger.silent()) };
}

describe('an exchange of tokens', () => {
  afterEach(() => jest.useRealTimers());

  it('holds up a message for five seconds at the most, and is made once for all messages of a caller', async () => {
    jest.useFakeTimers();
    const { exchanges, looks } = exchangesWith(() => new Promise(() => undefined));
    const over: string[] = [];
    const sent = ['one', 'two'].map((name) =>
      exchanges.ensureSignedIn(caller(), target()).then(() => over.push(name)),
    );
    await jest.advanceTimersByTimeAsync(4_999);
    expect(over).toEqual([]);
    await jest.advanceTimersByTimeAsync(1);
    await Promise.all(sent);
    expect(looks).toEqual([
      { tenantId: 'acme', resource: 'https://crm.example.com/mcp', caller: 'user:ada' },
    ]);
  });

  it('is not tried again at once after a failure, which no message notices', async () => {
    const { exchanges, looks } = exchangesWith(() => Promise.reject(new Error('away')));
    await exchanges.ensureSignedIn(caller(), target());
    await exchanges.ensureSignedIn(caller(), target());
    expect(looks).toHaveLength(1);
  });

  it.each([
    ['of another issuer', caller('https://other.example.com'), {}],
    ['for a server at which people sign in', caller(), { credentials: 'perCaller' }],
    ['for a server whose issuer is not said', caller(), { issuer: undefined }],
  ])('is not made with a token %s', async (_, who, more) => {
    const { exchanges, looks } = exchangesWith(() => Promise.resolve(true));
    await exchanges.ensureSignedIn(who, target(more));
    expect(looks).toEqual([]);
  });
});
