import http from 'node:http';
import type { RpcAnswer } from './raw-caller.js';

/** An answer whose headers have come. */
export interface Opened {
  status: number;
  headers: http.IncomingHttpHeaders;
  /** The whole answer of a request that was refused. */
  json: Promise<RpcAnswer>;
  /** Resolves when the connection is gone. */
  closed: Promise<void>;
  close(): void;
}

/** A request whose answer is left open if it is a stream. */
export function openRequest(url: string, token: string, body: object | string): Promise<Opened> {
  return new Promise((resolve, reject) => {
    const headers = {
      authorization: `Bearer ${token}`,
      'content-type': 'application/json',
      'a2a-version': '1.0',
    };
    const sent = http.request(url, { method: 'POST', headers, agent: false }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      const closed = new Promise<void>((done) => response.once('close', done));
      response.on('error', () => undefined);
      resolve({
        status: response.statusCode ?? 0,
        headers: response.headers,
        get json() {
          return closed.then(() => JSON.parse(text) as RpcAnswer);
        },
        closed,
        close: () => response.destroy(),
      });
    });
    sent.on('error', reject);
    sent.end(typeof body === 'string' ? body : JSON.stringify({ jsonrpc: '2.0', id: 'mine', ...body }));
  });
}
