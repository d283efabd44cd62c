import { TaskState } from '@baton/a2a';
import { Elsewhere, answerIn, endOf, turnAt } from '../../../../../test/support/agents/remote.js';
import { NO_ACCESS_TOKENS, turnSecrets } from '../../../../../test/support/agents/turns.js';
import { remoteConfigSchema } from './remote-config.js';
import { RemoteConnector } from './remote-connector.js';

const { TASK_STATE_COMPLETED: COMPLETED, TASK_STATE_FAILED: FAILED } = TaskState;
const elsewhere = new Elsewhere();

afterEach(() => elsewhere.killAll());
afterAll(() => elsewhere.close());

describe('the connection to an agent elsewhere', () => {
  it('sends the credentials of the tenant, the trace, and metadata', async () => {
    const remote = await elsewhere.start({ token: 'sesame' });
    const headers = { Authorization: { secret: 'key', prefix: 'Bearer ' } };
    const traceparent = '00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01';
    const turn = turnAt(remote.url, 'hi', { headers }, { traceparent });
    turn.message.metadata = { colour: 'red' };
    expect(endOf(await elsewhere.run(turn))).toEqual({ state: COMPLETED });
    expect(remote.asked.at(-1)).toMatchObject({
      headers: { traceparent },
      params: { message: { metadata: { colour: 'red' } } },
    });
    const silent = turnAt(remote.url, 'hi', { headers, forward: { metadata: false } });
    silent.message.metadata = { colour: 'red' };
    await elsewhere.run(silent);
    expect(remote.asked.at(-1)?.params.message).not.toHaveProperty('metadata');
  });

  it('sends the access token of a sign-in, and another one once that is refused', async () => {
    const remote = await elsewhere.start({ token: 'sesame' });
    const asked: unknown[] = [];
    const noted: unknown[] = [];
    const tokens = {
      noteCall: (_: unknown, __: unknown, call: object) => {
        noted.push([call, remote.methods.some((method) => /message/i.test(method))]);
        return Promise.resolve(true);
      },
      refuse: () => Promise.resolve(),
      wider: () => Promise.resolve(undefined),
      offer: () => Promise.resolve(undefined),
      get: (_: unknown, { url }: { url: string }, refused?: string) => {
        asked.push([url, refused]);
        return Promise.resolve(refused === undefined ? 'old' : 'sesame');
      },
    };
    const turn = turnAt(remote.url, 'hi', { oauth: {} }, { secrets: turnSecrets({}, undefined, tokens) });
    expect(endOf(await elsewhere.run(turn))).toEqual({ state: COMPLETED });
    expect(asked).toContainEqual([remote.url, 'old']);
    // Before the message was sent.
    expect(noted).toEqual([[{ kind: 'remote-agent', name: new URL(remote.url).host }, false]]);
  });

  it('keeps no card that was read with the sign-in of a caller', async () => {
    const oauth = { credentials: 'exchange', issuer: 'https://id.example', clientId: 'b', clientSecret: 's' };
    const cardsOf = async (how: object) => {
      const remote = await elsewhere.start({ token: 'sesame' });
      const connector = new RemoteConnector();
      const turn = turnAt(remote.url, 'hi', { oauth: how });
      const config = remoteConfigSchema.parse(turn.agent.definition.config);
      const { signal } = new AbortController();
      for (const token of ['sesame', 'sesame', 'another']) {
        const tokens = { ...NO_ACCESS_TOKENS, get: () => Promise.resolve(token) };
        const secrets = turnSecrets({}, undefined, tokens);
        await connector
          .connect({ ...elsewhere.outside(turn), secrets }, config, signal)
          .catch(() => undefined);
      }
      return remote.methods.length;
    };
    // A refused token is asked for once more.
    expect(await cardsOf(oauth)).toBe(4);
    expect(await cardsOf({})).toBe(1);
  });

  it('names the missing sign-in', async () => {
    const remote = await elsewhere.start({ token: 'sesame' });
    const { host } = new URL(remote.url);
    expect(endOf(await elsewhere.run(turnAt(remote.url, 'hi', { oauth: {} })))).toMatchObject({
      state: FAILED,
      text: `The agent cannot be called: there is no sign-in at ${host}: an administrator of the tenant must sign in there`,
    });
    expect(remote.asked).toEqual([]);
  });

  it.each([
    [{}, /answered with HTTP 401: check the headers and secrets/],
    [
      { headers: { Authorization: { secret: 'none' } } },
      /the secret "none" of the header Authorization is not set/,
    ],
  ])('says what is wrong with its credentials (%j)', async (config, reason) => {
    const remote = await elsewhere.start({ token: 'sesame' });
    expect(endOf(await elsewhere.run(turnAt(remote.url, 'hi', config)))).toMatchObject({
      state: FAILED,
      text: expect.stringMatching(reason) as string,
    });
  });

  it('sends nothing to another origin than the card’s, unless the settings list it', async () => {
    const other = await elsewhere.start();
    const remote = await elsewhere.start({ sendsTo: other.url });
    expect(endOf(await elsewhere.run(turnAt(remote.url, 'hi')))).toMatchObject({
      text: expect.stringMatching(/sends its callers to http:.+list that in the setting origins/) as string,
    });
    expect(other.asked).toEqual([]);
    const outputs = await elsewhere.run(turnAt(remote.url, 'hi', { origins: [other.url] }));
    expect(answerIn(outputs)).toBe('hi');
  });

  it('calls nothing that the lists of its tenant refuse, also where its card and its settings lead there', async () => {
    const other = await elsewhere.start();
    const remote = await elsewhere.start({ sendsTo: other.url });
    const bench = new Elsewhere();
    const say = async (deny: string[]) => {
      bench.lists = { allow: [], deny };
      return endOf(await bench.run(turnAt(remote.url, 'hi', { origins: [other.url] })));
    };
    const refused = { state: FAILED, text: expect.stringContaining('(egress_deny)') as string };
    expect(await say([new URL(other.url).host])).toMatchObject(refused);
    expect(remote.asked).not.toEqual([]);
    expect(other.asked).toEqual([]);
    const before = remote.asked.length;
    expect(await say(['127.0.0.0/8'])).toMatchObject(refused);
    expect([remote.asked.length, other.asked]).toEqual([before, []]);
    await bench.close();
  });

  it.each([
    ['http://169.254.169.254/', '"169.254.169.254" is not at a public address'],
    ['http://localhost:8080/', '"localhost" is not at a public address'],
  ])('is refused when its agent is at %s', async (card, reason) => {
    const closed = new Elsewhere([]);
    const outputs = await closed.run(turnAt(card, 'hi'));
    expect(endOf(outputs)).toMatchObject({ state: FAILED, text: expect.stringContaining(reason) as string });
    await closed.close();
  });

  it.each([
    [400, 'answered with HTTP 400'],
    [404, 'answered with HTTP 404: check the URL'],
  ])('fails plainly at an answer of HTTP %i', async (status, reason) => {
    const remote = await elsewhere.start();
    remote.spoil('card', status);
    expect(endOf(await elsewhere.run(turnAt(remote.url, 'hi')))).toMatchObject({
      text: expect.stringContaining(reason) as string,
    });
  });

  it('fails with the reason when there is no card, or none that it can use', async () => {
    const remote = await elsewhere.start();
    const wrong = turnAt(remote.url, 'hi', { version: '0.3' });
    expect(endOf(await elsewhere.run(wrong))).toMatchObject({
      text: expect.stringContaining('offers no interface with version 0.3') as string,
    });
  });
});
