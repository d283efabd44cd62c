import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { createRemoteJWKSet, type JWTPayload, jwtVerify } from 'jose';
import { passOn } from '../../support/pass-on.js';

const METADATA = '/.well-known/oauth-protected-resource/mcp';

/** A tool server that accepts access tokens of Keycloak for the client `crm` only. */
export class GuardedTools {
  /** What the tokens of calls have said, in their order. */
  readonly callers: JWTPayload[] = [];
  private readonly refused = new Set<unknown>();
  private readonly keys;

  private constructor(
    private readonly listener: http.Server,
    private readonly issuer: string,
    private readonly target: string,
  ) {
    this.keys = createRemoteJWKSet(new URL(`${issuer}/protocol/openid-connect/certs`));
  }

  /** @param target URL of the MCP server behind it */
  static async start(issuer: string, target: string): Promise<GuardedTools> {
    const listener = http.createServer();
    const tools = new GuardedTools(listener, issuer, target);
    listener.on('request', (request: http.IncomingMessage, response: http.ServerResponse) => {
      tools.answer(request, response).catch((error: unknown) => response.destroy(error as Error));
    });
    listener.listen(0, '127.0.0.1');
    await once(listener, 'listening');
    return tools;
  }

  async stop(): Promise<void> {
    const closed = once(this.listener, 'close');
    this.listener.close();
    this.listener.closeAllConnections();
    await closed;
  }

  /** Refuses the token of the last call from now on. @returns what it says */
  refuseLast(): JWTPayload {
    const last = this.callers.at(-1)!;
    this.refused.add(last.jti);
    return last;
  }

  get url(): string {
    return `http://127.0.0.1:${(this.listener.address() as AddressInfo).port}`;
  }

  get resource(): string {
    return `${this.url}/mcp`;
  }

  private async answer(request: http.IncomingMessage, response: http.ServerResponse): Promise<void> {
    if (request.url === METADATA) {
      const metadata = { resource: this.resource, authorization_servers: [this.issuer] };
      response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify(metadata));
      return;
    }
    const { issuer } = this;
    const [, token = ''] = /^Bearer (\S+)$/.exec(request.headers.authorization ?? '') ?? [];
    const verified = await jwtVerify(token, this.keys, { issuer, audience: 'crm' }).catch(() => undefined);
    if (!verified || this.refused.has(verified.payload.jti)) {
      const challenge = `Bearer resource_metadata="${this.url}${METADATA}"`;
      response.writeHead(401, { 'www-authenticate': challenge }).end();
      return;
    }
    this.callers.push(verified.payload);
    passOn(this.target, request, response, await buffer(request));
  }
}
