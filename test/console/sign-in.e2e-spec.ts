import { rawRequest } from '../support/api/raw-request.js';
import type { Page } from 'playwright-core';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { nightlyIt } from '../support/nightly.js';
import { OpenIdProvider, RESOURCE } from '../support/open-id-provider.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import type { TestTenant } from '../support/stack.js';

describeConsole('sign-in to the console', () => {
  let baton: ConsoleStack;
  let tenant: TestTenant;
  let openId: OpenIdProvider;
  beforeAll(async () => {
    openId = await OpenIdProvider.start();
    baton = await ConsoleStack.start({
      env: {
        OUTBOUND_ALLOW: '127.0.0.1',
        CONSOLE_OIDC_ISSUER: openId.url,
        CONSOLE_OIDC_CLIENT_ID: 'app',
        CONSOLE_OIDC_AUDIENCE: RESOURCE,
      },
    });
    tenant = await baton.stack.createTenant();
    const of = ['--tenant', tenant.slug, '--audience', 'baton', '--allow-http'];
    await baton.stack.addIssuer(openId.url, ...of);
  });
  afterEach(() => baton.expectNoFaults());
  afterAll(async () => {
    await baton.stop();
    await openId.stop();
  });

  it('leads from the root over the sign-in to the page that was asked for', async () => {
    const page = await baton.open({ path: '/tasks?state=failed' });
    await page.getByRole('heading', { name: 'Sign in to Baton' }).waitFor();
    await baton.expectAccessible(page);
    await page.getByLabel('Token').first().fill(tenant.token);
    await page.keyboard.press('Enter');
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe('/console/tasks');
    expect(page.url()).toContain('failed');
    expect(page.url()).not.toContain(tenant.token);
    const stored = await page.evaluate<string[]>(
      '[JSON.stringify(sessionStorage), JSON.stringify(localStorage)]',
    );
    expect(stored[0]).toContain(tenant.token);
    expect(stored[1]).not.toContain(tenant.token);
    await page.reload();
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
  });

  nightlyIt('shows what is wrong with a token, and signs no user in', async () => {
    baton.expectFaults(/401/);
    const page = await baton.open();
    await page.getByLabel('Token').first().fill('baton_wrong');
    await page.keyboard.press('Enter');
    await page.getByRole('alert').getByText('the token is not known', { exact: true }).first().waitFor();
    expect(new URL(page.url()).pathname).toBe('/console/sign-in');
  });

  it('signs in with the link of npm start, once, and keeps neither code nor token in the address', async () => {
    const code = 'code-of-the-link';
    const expiresAt = Date.now() + 3_600_000;
    await baton.stack.apis[0]!.tell({ type: 'sign-in-link', code, token: tenant.token, expiresAt });
    const page = await baton.open({ path: `/link#${code}` });
    await page.getByRole('heading', { name: 'Home', level: 1 }).waitFor();
    await page.getByText(tenant.slug).first().waitFor();
    const address = await page.evaluate<string>('location.href');
    expect([address.includes(code), address.includes(tenant.token)]).toEqual([false, false]);
    expect(baton.stack.apis[0]!.log()).not.toContain(code);
    baton.expectFaults(/404/, /this link no longer works/);
    const again = await baton.open({ path: `/link#${code}` });
    await again.getByText('this link no longer works').waitFor();
    await baton.expectAccessible(again);
    expect(await again.evaluate('location.hash')).toBe('');
    await again.getByRole('link', { name: 'Sign in again' }).click();
    await again.getByRole('heading', { name: 'Sign in to Baton' }).waitFor();
  });

  nightlyIt('shows who has signed in, and forgets the token when they leave', async () => {
    const token = await baton.stack.createToken(tenant.slug, 'agents:call');
    const page = await baton.open({ token });
    await page.getByRole('button', { name: /^test/ }).click();
    await page.getByText('May do: agents:call').waitFor();
    await page.getByText(`Tenant ${tenant.slug}`).waitFor();
    await page.getByRole('menuitem', { name: 'Sign out' }).click();
    await page.getByRole('heading', { name: 'Sign in to Baton' }).waitFor();
    // The call in a clone, where the tests run.
    await page.getByText('node bin/baton.cjs tokens create --tenant SLUG --scopes admin').waitFor();
    expect(await page.evaluate('JSON.stringify(sessionStorage)')).not.toContain(token);
  });

  nightlyIt('shows when a token is no longer valid', async () => {
    baton.expectFaults(/401/);
    const token = await baton.stack.createToken(tenant.slug, 'tasks:read');
    const page = await baton.open({ token, path: '/tasks' });
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    const headers = { authorization: `Bearer ${await baton.stack.createToken(tenant.slug, 'admin')}` };
    const whoami = await fetch(`${baton.url}/v1/whoami`, { headers: { authorization: `Bearer ${token}` } });
    const { token: own } = (await whoami.json()) as { token: { id: string } };
    expect((await fetch(`${baton.url}/v1/tokens/${own.id}`, { method: 'DELETE', headers })).status).toBe(200);
    await page.reload();
    await page.getByText('the token was revoked').waitFor();
  });

  it('is a page that runs nothing but its own files, at any path, and is never stored', async () => {
    const html = { accept: 'text/html' };
    const root = await fetch(baton.url, { headers: html, redirect: 'manual' });
    expect([root.status, root.headers.get('location')]).toEqual([302, '/console']);
    expect((await fetch(baton.url, { headers: { accept: 'application/json' } })).status).toBe(405);
    const pages = await Promise.all(
      ['/console', '/console/tasks/any'].map((path) => fetch(baton.url + path)),
    );
    const nonces = await Promise.all(
      pages.map(async (page) => {
        expect(page.headers.get('cache-control')).toBe('no-store');
        const policy = page.headers.get('content-security-policy') ?? '';
        expect(policy).toMatch(/default-src 'none'; script-src 'self'; style-src 'self' 'nonce-[\w-]+';/);
        expect(policy).not.toMatch(/unsafe|\*/);
        const nonce = /'nonce-([\w-]+)'/.exec(policy)?.[1] ?? '';
        const text = await page.text();
        expect(text).toContain(`nonce="${nonce}"`);
        // The call in a clone, where the tests run.
        expect(text).toContain('name="baton-command-line" content="node bin/baton.cjs"');
        return nonce;
      }),
    );
    expect(new Set(nonces).size).toBe(2);
  });

  it('has files that browsers keep, packed, and none but those of the build', async () => {
    const [asset = ''] =
      /\/console\/assets\/index-[\w-]+\.js/.exec(await (await fetch(`${baton.url}/console`)).text()) ?? [];
    const file = await fetch(baton.url + asset);
    expect(Object.fromEntries(file.headers)).toMatchObject({
      'cache-control': 'public, max-age=31536000, immutable',
      'content-encoding': 'gzip',
      'content-type': expect.stringMatching(/^text\/javascript/),
    });
    const etag = file.headers.get('etag') ?? '';
    // A fetch with such a header asks for no copy.
    const again = await rawRequest(baton.url + asset, {
      headers: { 'if-none-match': etag, 'accept-encoding': 'gzip' },
    });
    expect([etag === '', again.status]).toEqual([false, 304]);
    const smaller = await rawRequest(baton.url + asset, {
      headers: { 'accept-encoding': 'gzip, deflate, br' },
    });
    expect(smaller.headers['content-encoding']).toBe('br');
    const plain = await fetch(baton.url + asset, { headers: { 'accept-encoding': 'identity' } });
    expect([plain.headers.get('content-encoding'), await plain.text()]).toEqual([null, await file.text()]);
    for (const path of ['none.js', '..%2findex.html', '..%2f..%2fapps%2fapi%2fsrc%2fmain.js', '%2e%2e']) {
      const answer = await fetch(`${baton.url}/console/assets/${path}`);
      expect([path, (await answer.text()).includes('require(')]).toEqual([path, false]);
    }
    expect((await fetch(`${baton.url}/console/assets/none.js`)).status).toBe(404);
  });

  it('is not at a host that is bound to an agent', async () => {
    await baton.stack.baton(
      'hosts',
      'bind',
      'agent.example',
      '--tenant',
      tenant.slug,
      '--agent',
      'echo',
      '--public',
    );
    const statusAt = async (path: string): Promise<number> =>
      (await rawRequest(baton.url + path, { headers: { host: 'agent.example', accept: 'text/html' } }))
        .status;
    expect([
      await statusAt('/console'),
      await statusAt('/console/settings.json'),
      await statusAt('/'),
    ]).toEqual([404, 404, 200]);
  });

  describe('at an OpenID provider', () => {
    /** The provider's own page asks for a font, and it has no icon. */
    const OF_PROVIDER = /fonts\.g(oogleapis|static)\.com|favicon\.ico/;
    /** Its page takes any name. */
    async function signIn(page: Page, name: string): Promise<void> {
      await page.getByRole('button', { name: `Sign in at ${new URL(openId.url).host}` }).click();
      await page.getByPlaceholder('Enter any login').fill(name);
      await page.getByPlaceholder('and password').fill('any');
      await page.getByRole('button', { name: 'Sign-in' }).click();
      await page.getByRole('button', { name: 'Continue' }).click();
    }
    /** It asks for consent each time, because a copy of a public client could be made. */
    async function signInAgain(page: Page): Promise<void> {
      await page.getByRole('button', { name: /^Sign in at/ }).click();
      await page.getByRole('button', { name: 'Continue' }).click();
    }
    const stored = (page: Page) => page.evaluate<string>('JSON.stringify(sessionStorage)');

    it('shows the tasks of the user, and signs out and in again', async () => {
      baton.expectFaults(OF_PROVIDER);
      const token = await openId.userToken('ada');
      const caller = new RawCaller(baton.stack.url(0), token);
      const { result } = await caller.call('SendMessage', sendParams('Hello'));
      const { id } = (result as { task: { id: string } }).task;
      const page = await baton.open({ path: '/tasks?state=completed' });
      await baton.expectAccessible(page);
      await signIn(page, 'ada');
      // Where she wanted to go, and what is hers.
      await page.getByRole('link', { name: id }).waitFor();
      const { pathname, search } = new URL(page.url());
      expect(pathname).toBe('/console/tasks');
      expect(search).toContain('completed');
      expect(search).not.toContain('code=');
      expect(openId.asked.some((path) => /code_challenge_method=S256/.test(path))).toBe(true);
      await page.reload();
      await page.getByRole('link', { name: id }).waitFor();
      await page.getByRole('button', { name: /^ada/ }).click();
      await page.getByText('May do: agents:call').waitFor();
      await page.getByRole('menuitem', { name: 'Sign out' }).click();
      await page.getByRole('heading', { name: 'Sign in to Baton' }).waitFor();
      expect(await stored(page)).not.toContain('access_token');
      // Her session at the provider continues: it asks for no password.
      await signInAgain(page);
      await page.getByRole('link', { name: id }).waitFor();
    });

    nightlyIt('shows that the sign-in has expired, and leads back to the page after another', async () => {
      baton.expectFaults(OF_PROVIDER);
      const page = await baton.open({ path: '/usage' });
      await signIn(page, 'bob');
      await page.getByRole('heading', { name: 'Usage and limits' }).waitFor();
      // The page would say it now, and the reload would take it away: it must not be open while the time passes.
      await page.goto('about:blank');
      await page.clock.install({ time: Date.now() + 2 * openId.terms.seconds * 1_000 });
      await page.goto('/console/usage');
      await page.getByText('Your sign-in has expired. Sign in again.').waitFor();
      expect(await stored(page)).not.toContain('access_token');
      await page.clock.setSystemTime(Date.now());
      await signInAgain(page);
      await page.getByRole('heading', { name: 'Usage and limits' }).waitFor();
    });

    nightlyIt('shows why the user is not signed in, and leads to another try', async () => {
      baton.expectFaults(OF_PROVIDER, /The provider has refused|not begun in this tab/);
      const page = await baton.open({ path: '/tasks' });
      await page.getByRole('button', { name: /^Sign in at/ }).click();
      await page.getByRole('link', { name: 'Cancel' }).click();
      await page.getByRole('alert').getByText('The provider has refused').waitFor();
      await baton.expectAccessible(page);
      // The same answer of the provider again, and one without a sign-in.
      await page.reload();
      await page.getByRole('alert').getByText('was not begun in this tab').waitFor();
      expect(await stored(page)).not.toContain('access_token');
      await page.getByRole('link', { name: 'Sign in again' }).click();
      await page.getByRole('button', { name: /^Sign in at/ }).waitFor();
    });
  });

  it('is readable in the dark', async () => {
    const page = await baton.open({ token: tenant.token, path: '/tasks', context: { colorScheme: 'dark' } });
    await page.getByRole('heading', { name: 'Tasks', level: 1 }).waitFor();
    await baton.expectAccessible(page);
  });
});
