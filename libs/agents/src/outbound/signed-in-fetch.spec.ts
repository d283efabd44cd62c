import type { TurnSecrets } from '../agent-runtime.js';
import type { WiderAccess } from '../access-tokens.js';
import { SignedInFetch } from './signed-in-fetch.js';

const URL = 'https://crm.example/mcp';

/** A server that requires these scopes of each token, in the order of the requests. */
function serverOf(...answers: (string | undefined)[]) {
  const tokens: (string | null)[] = [];
  const send = (_: unknown, init?: RequestInit): Promise<Response> => {
    tokens.push(new Headers(init?.headers).get('authorization'));
    const challenge = answers.shift();
    return Promise.resolve(
      challenge === undefined
        ? new Response('done')
        : new Response('no', { status: 403, headers: { 'www-authenticate': challenge } }),
    );
  };
  return { tokens, send };
}

const lacks = (scope: string): string => `Bearer error="insufficient_scope", scope="${scope}"`;

function callerOf(wider: (...asked: unknown[]) => WiderAccess | undefined, credentials = 'perCaller') {
  const secrets = {
    accessToken: () => Promise.resolve('one'),
    widerAccess: (_: unknown, refused: string, asked: string[]) => Promise.resolve(wider(refused, asked)),
  } as unknown as TurnSecrets;
  return new SignedInFetch(secrets, URL, { credentials } as never);
}

const post = { method: 'POST' };

describe('a request with a token that has too few scopes', () => {
  it('asks its caller to sign in with more, in the words of Baton', async () => {
    const seen: unknown[] = [];
    const caller = callerOf((...asked) => {
      seen.push(asked);
      return { scopes: ['tools', 'read', 'write'] };
    });
    const { send, tokens } = serverOf(lacks('read write'));
    const error = await caller
      .over(send)(URL, post)
      .then(String, (thrown: unknown) => thrown);
    expect(error).toMatchObject({
      message: 'your sign-in at crm.example lacks the scopes read write',
      isCallers: true,
      request: { url: URL, settings: { scopes: ['tools', 'read', 'write'] } },
    });
    expect([seen, tokens]).toEqual([[['one', ['read', 'write']]], ['Bearer one']]);
    expect(caller.needed).toBe(error);
  });

  it('is sent again with a token that is there by now, and no more than once', async () => {
    const again = serverOf(lacks('read'), undefined);
    const other = callerOf(() => ({ token: 'two' }));
    expect(await (await other.over(again.send)(URL, post)).text()).toBe('done');
    expect(again.tokens).toEqual(['Bearer one', 'Bearer two']);
    const endless = serverOf(lacks('read'), lacks('read'), lacks('read'));
    const refused = await other.over(endless.send)(URL, post);
    expect([refused.status, endless.tokens.length]).toEqual([403, 2]);
  });

  it.each([
    [
      'was asked for already',
      'perCaller',
      undefined,
      /it wants the scope read, .*asked already.*sign out and sign in again/,
    ],
    [
      'is for the whole tenant',
      'tenant',
      { scopes: ['a', 'read'] },
      /set oauth.scopes of the server to \["a","read"\]/,
    ],
  ])('is refused in words of Baton if it %s', async (_, credentials, wider, words) => {
    const caller = callerOf(() => wider, credentials);
    const response = await caller.over(serverOf(lacks('read')).send)(URL, post);
    expect([response.status, await response.text()]).toEqual([403, expect.stringMatching(words)]);
    expect(caller.needed).toBeUndefined();
  });

  it.each([
    ['names no scope', 'Bearer error="insufficient_scope"'],
    ['has another reason', 'Bearer error="invalid_request", scope="read"'],
    ['names what is no scope', 'Bearer error="insufficient_scope", scope="\\"'],
    ['wants another kind of credentials', 'Basic realm="insufficient_scope"'],
  ])('is refused in the words of a server that %s', async (_, challenge) => {
    const caller = callerOf(() => ({ scopes: ['read'] }));
    const response = await caller.over(serverOf(challenge).send)(URL, post);
    expect([response.status, await response.text()]).toEqual([403, 'no']);
  });
});
