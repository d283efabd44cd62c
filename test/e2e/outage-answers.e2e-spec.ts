import { waitUntil } from '../../apps/local/src/services/service-process.js';
import { driversOf } from '../support/nightly.js';
import { startPrivatePostgres } from '../support/postgres.js';
import { RawCaller, sendParams } from '../support/raw-caller.js';
import { Stack } from '../support/stack.js';

it.each(driversOf('redis'))('while Postgres is away callers get the time to retry, on %s', async (driver) => {
  const database = await startPrivatePostgres();
  const stack = await Stack.start({ driver, workers: 0, database, env: { TOKEN_CACHE_MS: '1' } });
  try {
    const { token } = await stack.createTenant();
    const [api] = stack.apis;
    await database.stop();
    const headers = { authorization: `Bearer ${token}` };
    // Its answer may be a second old.
    await waitUntil(async () => (await fetch(`${api!.url}/readyz`)).status === 503, Infinity);
    for (const path of ['/v1/tasks', '/v1/agents', '/agents/echo/.well-known/agent-card.json', '/readyz']) {
      const response = await fetch(api!.url + path, { headers });
      await response.text();
      expect([path, response.status, response.headers.get('retry-after')]).toEqual([path, 503, '2']);
    }
    const caller = new RawCaller(stack.url(0), token);
    const [first, ...more] = await Promise.all(
      Array.from({ length: 10 }, () => caller.call('SendMessage', sendParams('x'))),
    );
    expect(first?.error).toMatchObject({
      code: -32603,
      data: [{ reason: 'UNAVAILABLE' }, { retryDelay: '2s' }],
    });
    expect(more.every((answer) => answer.error?.code === -32603)).toBe(true);

    await database.restart();
    while (!api!.log().includes('Postgres is back')) await new Promise((resolve) => setTimeout(resolve, 50));
    const lines = api!.log().split('\n');
    expect(lines.filter((line) => line.includes('Postgres is away'))).toHaveLength(1);
    const [back] = lines.filter((line) => line.includes('Postgres is back'));
    expect((JSON.parse(back!) as { failedRequests: number }).failedRequests).toBeGreaterThanOrEqual(13);
    expect((await fetch(`${api!.url}/v1/tasks`, { headers })).status).toBe(200);
  } finally {
    await stack.stop();
  }
});
