import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { ConsoleStack, describeConsole } from '../support/console.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { MASTER_KEY } from '../support/shared-stack.js';
import type { TestTenant } from '../support/stack.js';

describeConsole('deliveries of webhooks in the console', () => {
  const startConsole = ConsoleStack.share({ OUTBOUND_ALLOW: '127.0.0.1', BATON_MASTER_KEY: MASTER_KEY });
  let baton: ConsoleStack;
  let tenant: TestTenant;
  let caller: RawCaller;
  let receiver: Server;
  /** What the receiver answers. */
  let status = 204;
  beforeAll(async () => {
    receiver = createServer((request, response) => {
      request.resume();
      // A receiver with a long answer.
      request.on('end', () =>
        response
          .writeHead(status)
          .end(status === 500 ? `no room for ${String(request.headers['webhook-signature'])}` : undefined),
      );
    });
    await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
    baton = await startConsole();
    tenant = await baton.stack.createTenant('admin');
    caller = new RawCaller(baton.stack.url(0), tenant.token);
  });
  afterEach(() => baton.expectNoFaults());
  afterAll(async () => {
    receiver.closeAllConnections();
    receiver.close();
  });

  const send = async (text: string): Promise<string> => {
    const { result } = await caller.call('SendMessage', sendParams(text));
    return (result as { task: { id: string } }).task.id;
  };

  it('say that a receiver refuses them, and deliver them again when it takes them', async () => {
    const url = `http://127.0.0.1:${(receiver.address() as AddressInfo).port}/hook`;
    const made = await fetch(`${baton.url}/v1/webhooks`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ url, states: ['completed'] }),
    });
    expect(made.status).toBe(201);
    const page = await baton.open({ token: tenant.token, path: '/webhooks' });
    await page.getByText('nothing delivered yet').waitFor();
    await send('taken');
    await page.getByRole('link', { name: /: ok$/ }).waitFor();
    // The buttons of a card are whole on a telephone.
    const size = page.viewportSize()!;
    await page.setViewportSize({ width: 390, height: 844 });
    const buttons = page.getByRole('cell').getByRole('button');
    const cut = await buttons.evaluateAll((all: { scrollWidth: number; clientWidth: number }[]) =>
      all.filter((it) => it.scrollWidth > it.clientWidth),
    );
    expect(await buttons.count()).toBe(4);
    expect(cut).toEqual([]);
    await page.setViewportSize(size);
    status = 500;
    const refused = await send('refused');
    await page.getByText(/failing for 1 of 2 tasks: .*500/).waitFor();
    await baton.expectAccessible(page);
    await page.getByRole('link', { name: /^Deliveries of/ }).click();
    const row = page.getByRole('row').filter({ hasText: refused });
    await row.getByText('retrying').waitFor();
    await row.getByText(/500/).first().waitFor();
    await row.getByText(/failures? since/).waitFor();
    await page.getByRole('row').getByText('delivered', { exact: true }).waitFor();
    await baton.expectAccessible(page);
    await page.getByRole('button', { name: `Requests about ${refused}` }).click();
    const requests = page.getByRole('dialog');
    await requests.getByText('no room for (hidden)').first().waitFor();
    await requests.getByText('webhook-signature: (hidden)').first().waitFor();
    await requests.getByText('task.state_changed').first().waitFor();
    await baton.expectAccessible(page);
    await requests.getByRole('button', { name: 'Close' }).click();
    status = 204;
    await page.getByRole('button', { name: 'Redeliver all that failed' }).click();
    await row.getByText('delivered', { exact: true }).waitFor();
    await row.getByRole('link', { name: refused }).click();
    await page.getByRole('row', { name: 'State completed' }).waitFor();
  });
});
