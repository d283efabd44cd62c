import { createServer, request as open, type Server } from 'node:http';
import { freePort } from '../support/ports.js';
import { ConsoleStack, describeConsole } from '../support/console.js';
import type { TestTenant } from '../support/stack.js';

const PATH = '/baton';

/** A reverse proxy that has Baton below a path, which it strips: nginx with `location /baton/ { proxy_pass http://api/; }`. */
function proxyTo(port: number): Server {
  return createServer((incoming, response) => {
    const { method, url = '', headers } = incoming;
    const path = url.startsWith(`${PATH}/`) ? url.slice(PATH.length) : undefined;
    if (path === undefined) {
      response.writeHead(404).end('this path is not of Baton');
      return;
    }
    const onward = open({ port, host: '127.0.0.1', method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode ?? 502, answer.headers);
      answer.pipe(response);
    });
    onward.on('error', () => response.destroy());
    incoming.pipe(onward);
  });
}

describeConsole('a PUBLIC_URL with a path', () => {
  let baton: ConsoleStack;
  let tenant: TestTenant;
  let proxy: Server;
  let server: string;
  beforeAll(async () => {
    const [port, apiPort] = [await freePort(), await freePort()];
    server = `http://127.0.0.1:${port}${PATH}`;
    baton = await ConsoleStack.start({ env: { PUBLIC_URL: server, PORT: String(apiPort) } });
    proxy = proxyTo(apiPort).listen(port, '127.0.0.1');
    tenant = await baton.stack.createTenant();
  });
  afterEach(() => baton.expectNoFaults());
  afterAll(async () => {
    proxy.close();
    proxy.closeAllConnections();
    await baton.stop();
  });

  it('has a console: people sign in, open a link into it, and call an agent', async () => {
    const page = await baton.open({ context: { baseURL: server }, path: '/agents/echo' });
    await page.getByRole('heading', { name: 'Sign in to Baton' }).waitFor();
    await page.getByLabel('Token').first().fill(tenant.token);
    await page.keyboard.press('Enter');
    await page.getByRole('tab', { name: 'Card' }).click();
    await page.getByLabel('Card of echo').getByText('supportedInterfaces').waitFor();
    expect(new URL(page.url()).pathname).toBe(`${PATH}/console/agents/echo`);
    await page.goto(`${server}/console/playground?agent=echo`);
    await page.getByLabel('Text', { exact: true }).fill('below a path');
    await page.getByRole('button', { name: 'Send' }).click();
    await page.getByText('Task: completed.').waitFor();
    await page.goto(`${server}/console/tasks`);
    await page.getByRole('row', { name: /echo/ }).first().waitFor();
  });

  it('leads people from its root to the console', async () => {
    const answer = await fetch(`${server}/`, { headers: { accept: 'text/html' }, redirect: 'manual' });
    expect([answer.status, answer.headers.get('location')]).toEqual([302, `${PATH}/console`]);
  });

  it('is in the addresses of cards, which lead to the agent', async () => {
    const headers = { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' };
    const card = (await (
      await fetch(`${server}/agents/echo/.well-known/agent-card.json`, { headers })
    ).json()) as {
      url: string;
    };
    expect(card.url).toBe(`${server}/agents/echo`);
    const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'tasks/get', params: { id: 'none' } });
    const answer = await fetch(card.url, { method: 'POST', headers, body });
    expect(await answer.json()).toMatchObject({ error: { code: -32001 } });
  });
});
