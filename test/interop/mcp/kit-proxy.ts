import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { text } from 'node:stream/consumers';

type Json = Record<string, any>; // oxlint-disable-line typescript/no-explicit-any -- rewrites the wire

/** The tools that scenarios look for in the list. */
const LISTED = ['slow_compute', 'failing_job', 'confirm_delete', 'greet', 'test_simple_text'];

/**
 * The suite sends no credentials, and calls tools by names of its own. This proxy adds the token, and makes of each of its tools
 * a call of the agent `kit`. Nothing else is changed on the way.
 */
export class KitProxy {
  private target = { url: '', token: '' };

  private constructor(private readonly server: http.Server) {
    server.on('request', (request, response) => {
      void this.forward(request, response).catch(() => response.destroy());
    });
  }

  static async start(): Promise<KitProxy> {
    const server = http.createServer();
    server.listen(0, '127.0.0.1');
    await once(server, 'listening');
    return new KitProxy(server);
  }

  get origin(): string {
    return `http://127.0.0.1:${String((this.server.address() as AddressInfo).port)}`;
  }

  forwardTo(url: string, token: string): void {
    this.target = { url, token };
  }

  close(): void {
    this.server.close();
    this.server.closeAllConnections();
  }

  private async forward(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    const { url, token } = this.target;
    const { body, name, method } = asCallOfKit(await text(request));
    const headers: http.OutgoingHttpHeaders = { ...request.headers, authorization: `Bearer ${token}` };
    delete headers['content-length'];
    if (name !== undefined && String(headers['mcp-name']).trim() === name) headers['mcp-name'] = 'kit';
    const forwarded = http.request(url, { method: request.method, headers });
    response.on('close', () => forwarded.destroy());
    forwarded.end(body);
    const [answer] = (await once(forwarded, 'response')) as [http.IncomingMessage];
    const { 'content-length': _, ...others } = answer.headers;
    response.writeHead(answer.statusCode ?? 500, others);
    if (method === 'tools/list') response.end(withTools(await text(answer)));
    else answer.pipe(response);
  }
}

function asCallOfKit(said: string): { body: string; name?: string; method?: string } {
  const request = parsed(said);
  const { method, params } = request ?? {};
  const name: unknown = params?.name;
  if (
    method !== 'tools/call' ||
    typeof name !== 'string' ||
    !/^[a-z_]+$/.test(name) ||
    name.startsWith('task_')
  )
    return { body: said, method };
  const data = params.arguments as Json | undefined;
  const given = { message: name, ...(data && Object.keys(data).length > 0 && { data }) };
  const body = JSON.stringify({ ...request, params: { ...params, name: 'kit', arguments: given } });
  return { body, name, method };
}

function withTools(said: string): string {
  const answer = parsed(said);
  const tools = answer?.result?.tools as Json[] | undefined;
  const kit = tools?.find(({ name }) => name === 'kit');
  if (!tools || !kit) return said;
  const more = LISTED.map((name) => ({ ...kit, name }));
  return JSON.stringify({ ...answer, result: { ...answer!.result, tools: [...tools, ...more] } });
}

function parsed(said: string): Json | undefined {
  try {
    return JSON.parse(said) as Json;
  } catch {
    return undefined;
  }
}
