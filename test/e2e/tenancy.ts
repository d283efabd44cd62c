import { mkdtempSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Hold, times } from '../support/hold.js';
import { DRIVER } from '../support/nightly.js';
import { type Frame, RawCaller, sendParams } from '../support/raw-caller.js';
import { installTestAgents, shareStack } from '../support/shared-stack.js';
import type { Stack } from '../support/stack.js';
import { until } from '../support/until.js';

/** Longer than any test: a revocation is in force because every process gets a control message. */
const startStack = shareStack(
  DRIVER,
  { TOKEN_CACHE_MS: '600000' },
  { apis: 2, installAgents: (agents) => installTestAgents(agents, 'pacer') },
);

interface TokenJson {
  id: string;
  prefix: string;
}

describe('tenants', () => {
  let stack: Stack;
  let hold: Hold;
  beforeAll(async () => {
    stack = await startStack();
    hold = new Hold(stack.env.HOLD_FILE);
  });

  const post = (token: string, api = 0, method = 'ListTasks'): Promise<Response> =>
    fetch(stack.url(api), {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: JSON.stringify({
        jsonrpc: '2.0',
        id: 1,
        method,
        params: method === 'ListTasks' ? {} : sendParams('x'),
      }),
    });

  it('can neither see nor touch what another has: it looks as if it did not exist', async () => {
    const [ours, theirs] = [await stack.createTenant(), await stack.createTenant()];
    const us = new RawCaller(stack.url(0), ours.token);
    const them = new RawCaller(stack.url(0), theirs.token);
    const asked = await them.call(
      'SendMessage',
      sendParams('secret', { metadata: { echo: { askInput: true } } }),
    );
    const { id } = asked.result!.task as { id: string };
    const unknown = '0198c0de-0000-7000-8000-000000000000';
    const calls: [string, (taskId: string) => object][] = [
      ['GetTask', (taskId) => ({ id: taskId })],
      ['CancelTask', (taskId) => ({ id: taskId })],
      ['SubscribeToTask', (taskId) => ({ id: taskId })],
      ['SendMessage', (taskId) => sendParams('mine now', { taskId })],
      ['SendStreamingMessage', (taskId) => sendParams('mine now', { taskId })],
    ];
    for (const [method, params] of calls) {
      const foreign = JSON.stringify(await us.call(method, params(id)));
      expect(foreign).toContain('-32001');
      expect(foreign.replaceAll(id, unknown)).toBe(JSON.stringify(await us.call(method, params(unknown))));
    }
    expect((await us.call('ListTasks', {})).result).toMatchObject({ tasks: [], totalSize: 0 });
    expect((await them.call('GetTask', { id })).result?.status.state).toBe('TASK_STATE_INPUT_REQUIRED');
  });

  it('get an error that names what is wrong with their token', async () => {
    const { slug } = await stack.createTenant();
    for (const response of [await post('nonsense'), await fetch(stack.url(0), { method: 'POST' })]) {
      expect(response.status).toBe(401);
      expect(response.headers.get('www-authenticate')).toMatch(/^Bearer/);
    }
    const reader = await stack.createToken(slug, 'tasks:read');
    expect((await post(reader)).status).toBe(200);
    const refused = await post(reader, 0, 'SendMessage');
    expect(refused.status).toBe(403);
    expect(await refused.text()).toContain('agents:call');
  });

  it('lose access in every process when a token is revoked', async () => {
    const { slug, token } = await stack.createTenant();
    expect([(await post(token, 0)).status, (await post(token, 1)).status]).toEqual([200, 200]);
    const [listed] = JSON.parse(await stack.baton('tokens', 'list', '--tenant', slug, '--json')) as {
      id: string;
    }[];
    await stack.baton('tokens', 'revoke', '--tenant', slug, listed!.id);
    for (const api of [0, 1]) await until(async () => (await post(token, api)).status !== 200);
  });

  it('lose what they are waiting for when a token is revoked, and the tasks go on for others', async () => {
    const { slug, token } = await stack.createTenant();
    const url = stack.url(1, 'pacer');
    const reader = new RawCaller(url, await stack.createToken(slug, 'tasks:read'));
    const caller = new RawCaller(url, token);
    hold.hold();
    const { id } = (
      JSON.parse(await stack.baton('tokens', 'list', '--tenant', slug, '--json')) as TokenJson[]
    ).find(({ prefix }) => token.startsWith(prefix))!;
    const blocked = caller.call('SendMessage', sendParams(times(3, 'blocked')));
    const frames: Frame[] = [];
    for await (const frame of caller.stream('SendStreamingMessage', sendParams(times(3, 'streamed')))) {
      frames.push(frame);
      if (frames.length === 3) await stack.baton('tokens', 'revoke', '--tenant', slug, id);
    }
    const refused = frames.pop()!;
    expect([refused.id, refused.data.error]).toMatchObject([NaN, { message: 'the token was revoked' }]);
    expect((await blocked).error).toMatchObject({ message: 'the token was revoked' });
    expect((await post(token, 1)).status).toBe(401);
    hold.release();
    const taskId = (frames[0]!.data.result!.task as { id: string }).id;
    for await (const frame of reader.stream('SubscribeToTask', { id: taskId }, frames.at(-1)!.id)) {
      frames.push(frame);
    }
    expect(frames.map((frame) => frame.id)).toEqual(frames.map((_, i) => i + 1));
    expect(frames.at(-1)!.data.result).toMatchObject({
      statusUpdate: { status: { state: 'TASK_STATE_COMPLETED' } },
    });
  });

  it('are refused in every process while they are suspended, and for good when they are deleted', async () => {
    const { slug, token } = await stack.createTenant();
    const other = await stack.createTenant();
    const statuses = async () => [(await post(token, 0)).status, (await post(token, 1)).status];
    expect(await statuses()).toEqual([200, 200]);
    await stack.baton('tenants', 'suspend', slug, '--reason', 'unpaid bill');
    for (const api of [0, 1]) await until(async () => (await post(token, api)).status !== 200);
    const refused = await post(token, 0, 'SendMessage');
    expect(refused.status).toBe(403);
    expect(await refused.json()).toMatchObject({
      error: { message: 'the tenant is suspended: unpaid bill', data: [{ reason: 'TENANT_SUSPENDED' }] },
    });
    await stack.baton('tenants', 'resume', slug);
    for (const api of [0, 1]) await until(async () => (await post(token, api)).status !== 403);
    expect(await statuses()).toEqual([200, 200]);

    const params = sendParams('slow', { metadata: { echo: { delayMs: 600_000 } } });
    const sent = new RawCaller(stack.url(0), token).call('SendMessage', params);
    const deleted = JSON.parse(await stack.baton('tenants', 'delete', slug, '--yes', '--json')) as object;
    expect(deleted).toMatchObject({ slug, rows: { api_tokens: 1 } });
    // A call that waits is ended, whichever comes first: its token, its task, or the rows of the task are gone.
    expect(JSON.stringify(await sent)).toMatch(/the token is not known|TASK_STATE_CANCELED|TASK_NOT_FOUND/);
    expect(await statuses()).toEqual([401, 401]);
    expect((await post(other.token)).status).toBe(200);
  });

  it('that are imported from an export give the same answers', async () => {
    const { slug, token } = await stack.createTenant();
    const before = new RawCaller(stack.url(0), token);
    const text = 'NUL \u0000, line separator \u2028, emoji 😀';
    const ids: string[] = [];
    for (const metadata of [
      { echo: { chunks: 3 } },
      { echo: { askInput: true } },
      { echo: { fail: 'failed' } },
    ]) {
      const { result } = await before.call('SendMessage', sendParams(text, { metadata }));
      ids.push((result!.task as { id: string }).id);
    }
    const file = join(mkdtempSync(join(tmpdir(), 'baton-export-')), 'tenant.ndjson');
    await stack.baton('tenants', 'export', slug, file);
    await stack.baton('tenants', 'import', `${slug}-copy`, file);
    const after = new RawCaller(stack.url(1), await stack.createToken(`${slug}-copy`));
    const list = async (caller: RawCaller) =>
      (await caller.call('ListTasks', { includeArtifacts: true })).result;
    expect(((await list(after))!.tasks as object[]).length).toBe(3);
    expect(await list(after)).toEqual(await list(before));
    for (const id of ids) {
      expect((await after.call('GetTask', { id })).result).toEqual(
        (await before.call('GetTask', { id })).result,
      );
      const events = async (url: string, bearer: string) => {
        const headers = { authorization: `Bearer ${bearer}` };
        const response = await fetch(`${url}/v1/tasks/${id}/artifacts`, { headers });
        return response.json();
      };
      const copied = await stack.createToken(`${slug}-copy`);
      expect(await events(stack.apis[1]!.url, copied)).toEqual(await events(stack.apis[0]!.url, token));
    }
    // The log continues where it was: a stream from its beginning, and the next turn of the task that asks.
    const logOf = async (caller: RawCaller) => {
      const frames: Frame[] = [];
      for await (const frame of caller.stream('SubscribeToTask', { id: ids[1] }, 1)) {
        frames.push(frame);
        if (frames.length === 2) break;
      }
      return frames.map(({ id, data }) => [id, data.result]);
    };
    expect(await logOf(after)).toEqual(await logOf(before));
    const answer = await after.call('SendMessage', sendParams('the answer', { taskId: ids[1] }));
    expect(answer.result).toMatchObject({ task: { id: ids[1], status: { state: 'TASK_STATE_COMPLETED' } } });
  });

  it('manage their tokens over HTTP, with the commands of operators', async () => {
    const { slug, token } = await stack.createTenant('admin');
    const [{ url }, other] = [stack.apis[0]!, new URL(stack.apis[1]!.url).origin];
    const tokens = (...args: string[]) =>
      stack.baton('tokens', ...args, '--url', url, '--token', token, '--json');
    const made = JSON.parse(await tokens('create', '--agents', 'echo')) as Record<string, string>;
    const caller = (secret: string, api = 0) => new RawCaller(stack.url(api), secret);
    const sent = sendParams('before', { metadata: { echo: { askInput: true } } });
    const { id } = (await caller(made.token!).call('SendMessage', sent)).result!.task as { id: string };
    const rotated = JSON.parse(await tokens('rotate', made.prefix!, '--overlap', '1h')) as typeof made;
    for (const secret of [made.token!, rotated.token!]) {
      expect((await caller(secret, 1).call('SendMessage', sent)).result?.task.id).toBe(id);
      const index = await fetch(`${other}/agents/index/.well-known/agent-card.json`, {
        headers: { authorization: `Bearer ${secret}` },
      });
      expect(index.status).toBe(404);
    }
    const shown = JSON.parse(await tokens('show', made.prefix!)) as { running: { tasks: object[] } };
    expect(shown).toMatchObject({ id: made.id, running: { tasks: [{ id, agentId: 'echo' }] } });
    expect(JSON.parse(await tokens('revoke', made.id!, '--stop'))).toMatchObject({
      state: 'revoked',
      canceledTasks: 1,
      running: { tasks: [] },
    });
    const reader = caller(await stack.createToken(slug, 'tasks:read'));
    expect((await reader.call('GetTask', { id })).result?.status.state).toBe('TASK_STATE_CANCELED');
    // A process stores it a second later.
    const isUsed = async () => {
      const listed = JSON.parse(await tokens('list')) as { id: string; lastUsedAt: string | null }[];
      return listed.find((each) => each.id === made.id)!.lastUsedAt !== null;
    };
    await until(isUsed);
  });

  it('get back what they sent, whatever characters it has', async () => {
    const { token } = await stack.createTenant();
    const text = 'NUL \u0000, emoji 😀, "quotes" \\ and </script>';
    const caller = new RawCaller(stack.url(0), token);
    const sent = await caller.call('SendMessage', sendParams(text, { metadata: { constructor: '\u0000' } }));
    expect(sent.result?.task.artifacts[0].parts[0].text).toBe(text);
    const got = await caller.call('GetTask', { id: sent.result?.task.id });
    expect(got.result?.history[0].parts[0].text).toBe(text);
    expect(got.result?.history[0].metadata).toEqual({ constructor: '\u0000' });
    const half = await caller.call('SendMessage', sendParams('half \ud83d'));
    expect(half.error).toMatchObject({
      code: -32602,
      message: expect.stringMatching(/^message\.parts\[0\]\.text: /),
    });
  });
});
