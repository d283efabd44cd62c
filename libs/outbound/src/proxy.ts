import { type ClientRequest, type IncomingMessage, request as httpRequest } from 'node:http';
import { request as httpsRequest } from 'node:https';
import { type Socket, isIP, isIPv6 } from 'node:net';
import { ProxyError } from './proxy-error.js';

/** The proxy of OUTBOUND_PROXY. It opens tunnels with CONNECT (RFC 9110, section 9.3.6), for http as well as for https. */
export class Proxy {
  private readonly url: URL;
  private readonly credentials: string | undefined;

  /** @param url the validated `Environment.outboundProxy` */
  constructor(url: string) {
    this.url = new URL(url);
    const { username, password } = this.url;
    const pair = `${decodeURIComponent(username)}:${decodeURIComponent(password)}`;
    if (pair !== ':') this.credentials = `Basic ${Buffer.from(pair).toString('base64')}`;
  }

  /**
   * A connection to a host, through the proxy. Rejects with ProxyError.
   * @param host an address, or a name that the proxy resolves
   */
  tunnel(host: string, port: string, signal: AbortSignal): Promise<Socket> {
    return new Promise((resolve, reject) => {
      const fail = (reason: string): void =>
        reject(new ProxyError(`the proxy ${this.url.host} opened no tunnel: ${reason}`));
      const request = this.connect(`${isIPv6(host) ? `[${host}]` : host}:${port}`);
      const onAbort = (): void => void request.destroy(new Error('it gave no answer in time'));
      signal.addEventListener('abort', onAbort, { once: true });
      if (signal.aborted) onAbort();
      request.once('close', () => signal.removeEventListener('abort', onAbort));
      request.on('error', (error: NodeJS.ErrnoException) => fail(error.code ?? error.message));
      // A proxy without CONNECT answers as to any other request.
      request.once('response', (response: IncomingMessage) => {
        request.destroy();
        fail(`it answered with status ${String(response.statusCode)}`);
      });
      request.once('connect', ({ statusCode = 0 }: IncomingMessage, socket: Socket, head: Buffer) => {
        signal.removeEventListener('abort', onAbort);
        if (statusCode < 200 || statusCode > 299) {
          socket.destroy();
          return fail(`it answered with status ${String(statusCode)}`);
        }
        if (head.length > 0) socket.unshift(head);
        resolve(socket);
      });
      request.end();
    });
  }

  private connect(authority: string): ClientRequest {
    const { protocol, hostname, port } = this.url;
    const isTls = protocol === 'https:';
    const host = hostname.replace(/^\[|\]$/g, '');
    return (isTls ? httpsRequest : httpRequest)({
      host,
      // Node would take the name from the header `host`, which is that of the target. An address is no such name.
      servername: isIP(host) ? '' : host,
      port: port || (isTls ? 443 : 80),
      method: 'CONNECT',
      path: authority,
      agent: false,
      headers: {
        host: authority,
        ...(this.credentials !== undefined && { 'proxy-authorization': this.credentials }),
      },
    });
  }
}
