import { randomBytes } from 'node:crypto';
import { freePort } from '../support/ports.js';
import { DRIVERS } from '../support/index.js';
import { NameServer } from '../support/name-server.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { RemoteAgent } from '../support/remote-agent/remote-agent.js';
import { Stack, type TestTenant } from '../support/stack.js';

const SCOPES = ['agents:call', 'tasks:read', 'agents:write', 'admin'];
/** Names that no name server answers for. Node's own lookups would need four of them to stop. */
const SILENT = 40;

describe('names that no name server answers for', () => {
  let names: NameServer;
  let friend: RemoteAgent;
  let stack: Stack;
  let loud: TestTenant;
  let quiet: TestTenant;
  let friendUrl: string;

  beforeAll(async () => {
    names = await new NameServer({ 'friend.example': { a: ['127.0.0.1'] }, '*': 'silent' }).start();
    const port = await freePort();
    friendUrl = `http://friend.example:${port}`;
    friend = await RemoteAgent.start({ version: '1.0', port, sendsTo: friendUrl });
    stack = await Stack.start({
      driver: DRIVERS[0]!,
      workers: 1,
      env: {
        OUTBOUND_ALLOW: '127.0.0.1',
        OUTBOUND_DNS: names.address,
        BATON_MASTER_KEY: randomBytes(32).toString('base64'),
      },
    });
    [loud, quiet] = [await stack.createTenant(...SCOPES), await stack.createTenant(...SCOPES)];
    await createAgent(quiet, 'friend', friendUrl);
    for (let i = 0; i < SILENT; i++) await createAgent(loud, `silent-${i}`, `http://agent-${i}.example`);
  });
  afterAll(async () => {
    await stack.stop();
    await friend.kill();
    await names.stop();
  });

  const post = async (tenant: TestTenant, path: string, body: object): Promise<unknown> => {
    const response = await fetch(`${stack.apis[0]?.url}/v1/${path}`, {
      method: 'POST',
      headers: { authorization: `Bearer ${tenant.token}`, 'content-type': 'application/json' },
      body: JSON.stringify(body),
    });
    if (!response.ok) throw new Error(await response.text());
    return response.json();
  };

  const createAgent = (tenant: TestTenant, slug: string, card: string) =>
    post(tenant, 'agents', {
      slug,
      name: slug,
      description: 'Lives elsewhere',
      runtime: 'remote-a2a',
      config: { card },
    });

  const send = (tenant: TestTenant, agent: string, returnImmediately: boolean) =>
    new RawCaller(stack.url(0, agent), tenant.token).call('SendMessage', {
      ...sendParams('say hello'),
      configuration: { returnImmediately },
    });

  it('of one tenant stop no remote agent of another', async () => {
    const sent = Array.from({ length: SILENT }, (_, i) => send(loud, `silent-${i}`, true));
    const ids = (await Promise.all(sent)).map(({ result }) => result!.task.id as string);
    await names.isAskedFor((name) => name.startsWith('agent-'), 4);

    const { result } = await send(quiet, 'friend', false);
    expect(result?.task.status.state).toBe('TASK_STATE_COMPLETED');
    const caller = new RawCaller(stack.url(0, 'silent-0'), loud.token);
    const states = await Promise.all(
      ids.map(async (id) => (await caller.call('GetTask', { id })).result?.status.state as string),
    );
    expect(new Set(states).has('TASK_STATE_COMPLETED')).toBe(false);
  });

  it('of one tenant delay no webhook of another', async () => {
    const webhook = (tenant: TestTenant, url: string) => post(tenant, 'webhooks', { url });
    const silent = Array.from({ length: SILENT }, (_, i) => webhook(loud, `https://hook-${i}.example/`));
    const settled = Promise.allSettled(silent).then(() => 'silent');
    await names.isAskedFor((name) => name.startsWith('hook-'), 4);

    const first = Promise.race([webhook(quiet, `${friendUrl}/hook`).then(() => 'other'), settled]);
    expect(await first).toBe('other');
    await settled;
  });
});
