import { type FakeApi, startFakeApi } from '../../../../test/support/api/fake-api.js';
import { rawRequest } from '../../../../test/support/api/raw-request.js';
import { legacyRequest, request, sampleTask } from '../../../../test/support/api/samples.js';

const REASON = 'the tenant is suspended: unpaid bill';

let api: FakeApi;
beforeAll(async () => {
  api = await startFakeApi();
  api.operations.getTask = async () => sampleTask();
  api.hosts.push({ host: 'open.example', tenantId: 'tenant-1', agent: 'echo', public: true });
});
afterAll(() => api.close());
beforeEach(() => void api.suspended.add('tenant-1'));

describe('calls of a suspended tenant', () => {
  it.each([
    ['A2A 1.0', request.get],
    ['A2A 0.3', legacyRequest.get],
  ])('are refused with the reason in %s', async (_version, body) => {
    const response = await api.rpc(body);
    expect(response.status).toBe(403);
    expect(await response.json()).toMatchObject({ jsonrpc: '2.0', error: { code: -32600, message: REASON } });
    // No other scope would help.
    expect(response.headers.get('www-authenticate')).toBeNull();
  });

  it('are refused on /v1, as guests, and for cards; the server itself still answers', async () => {
    const get = (path: string, headers: Record<string, string>) => rawRequest(api.url + path, { headers });
    const token = { authorization: 'Bearer admin' };
    const refused = [
      await get('/v1/tasks', token),
      await get('/agents/echo/.well-known/agent-card.json', token),
      await get('/.well-known/agent-card.json', { host: 'open.example' }),
    ];
    for (const { status, text } of refused) {
      expect(status).toBe(403);
      expect(JSON.parse(text)).toEqual({ error: { code: 403, status: 'TENANT_SUSPENDED', message: REASON } });
    }
    expect((await get('/healthz', {})).status).toBe(200);
  });

  it('are refused when it was suspended while the body of the request arrived', async () => {
    api.suspended.clear();
    const body = JSON.stringify(request.get);
    const half = body.length / 2;
    let pieces = 0;
    const slow = new ReadableStream<Uint8Array>({
      pull(controller) {
        pieces += 1;
        if (pieces === 2) api.suspended.add('tenant-1');
        const piece = pieces === 1 ? body.slice(0, half) : body.slice(half);
        controller.enqueue(Buffer.from(piece));
        if (pieces === 2) controller.close();
      },
    });
    const response = await fetch(`${api.url}/agents/echo`, {
      method: 'POST',
      headers: { authorization: 'Bearer caller', 'content-type': 'application/json', 'a2a-version': '1.0' },
      body: slow,
      duplex: 'half',
    });
    expect(await response.json()).toMatchObject({ error: { message: REASON } });
  });

  it('exclude those of other tenants, and are answered again when it is resumed', async () => {
    expect((await api.rpc(request.get, { authorization: 'Bearer stranger' })).status).toBe(200);
    api.suspended.clear();
    expect((await api.rpc(request.get)).status).toBe(200);
  });
});
