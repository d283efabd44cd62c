import { EventEmitter } from 'node:events';
import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { SignInLink, type SignInLinkMessage } from './sign-in-link.js';

const CODE = 'a-code-that-nobody-guesses';
const TOKEN = 'baton_demo';

let api: FakeApi;
let parent: EventEmitter;

beforeEach(async () => {
  api = await startFakeApi();
  parent = new EventEmitter();
  api.app.get(SignInLink, { strict: false }).listenTo(parent);
});
afterEach(() => api.close());

/** As `npm start` does it. */
const giveLink = (more: Partial<SignInLinkMessage> = {}) =>
  parent.emit('message', {
    type: 'sign-in-link',
    code: CODE,
    token: TOKEN,
    expiresAt: Date.now() + 60_000,
    ...more,
  });

const redeem = async (code = CODE, headers: Record<string, string> = {}) => {
  const response = await fetch(`${api.url}/console/sign-in-link`, {
    method: 'POST',
    headers: { authorization: `Bearer ${code}`, ...headers },
  });
  return [response.status, await response.text()] as const;
};

describe('the link of npm start that signs in', () => {
  it('gives the token once, and then the reason why not again', async () => {
    giveLink();
    expect(await redeem()).toEqual([200, JSON.stringify({ token: TOKEN })]);
    const [status, text] = await redeem();
    expect(status).toBe(404);
    expect(text).toContain('this link no longer works');
    expect(text).not.toContain(TOKEN);
  });

  it('gives it to one of many who ask at the same time', async () => {
    giveLink();
    const answers = await Promise.all(Array.from({ length: 8 }, () => redeem()));
    expect(answers.filter(([status]) => status === 200)).toHaveLength(1);
  });

  it('gives nothing for another code, and still works afterwards', async () => {
    giveLink();
    for (const wrong of ['', 'wrong', `${CODE}x`, CODE.toUpperCase()])
      expect([wrong, (await redeem(wrong))[0]]).toEqual([wrong, 404]);
    expect((await redeem())[0]).toBe(200);
  });

  it('expires', async () => {
    giveLink({ expiresAt: Date.now() - 1 });
    expect((await redeem())[0]).toBe(404);
  });

  it('gives nothing to callers from other machines, nor through a proxy on this one', async () => {
    giveLink();
    for (const header of ['x-forwarded-for', 'forwarded'])
      expect([header, (await redeem(CODE, { [header]: 'for=203.0.113.9' }))[0]]).toEqual([header, 404]);
    const link = api.app.get(SignInLink, { strict: false });
    const from = (remoteAddress: string | undefined) =>
      link.redeem({
        raw: { socket: { remoteAddress } },
        headers: { authorization: `Bearer ${CODE}` },
      } as never);
    for (const address of ['192.0.2.7', '::ffff:192.0.2.7', '2001:db8::7', '10.0.0.1', undefined])
      expect([address, from(address)]).toEqual([address, undefined]);
    expect(from('::ffff:127.0.0.1')).toBe(TOKEN);
  });

  it('is not there without npm start, and other messages make none', async () => {
    expect((await redeem())[0]).toBe(404);
    for (const message of [null, 'ping', { type: 'ping' }]) parent.emit('message', message);
    expect((await redeem('undefined'))[0]).toBe(404);
  });

  it('stands in no line of the log', async () => {
    giveLink();
    await redeem();
    await redeem();
    const log = JSON.stringify(api.log);
    expect(log).toContain('/console/sign-in-link');
    expect([log.includes(CODE), log.includes(TOKEN)]).toEqual([false, false]);
  });
});
