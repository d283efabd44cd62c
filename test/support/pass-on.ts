import http from 'node:http';
import { pipeline } from 'node:stream';

/** Passes a request on to the server behind a guard, without its token, and the answer back. An answer that is cut is cut for the caller as well. */
export function passOn(
  target: string,
  request: http.IncomingMessage,
  response: http.ServerResponse,
  body: Buffer,
): void {
  const { authorization: _, host: __, ...headers } = request.headers;
  const passed = http.request(target, { method: request.method!, headers }, (answer) => {
    response.writeHead(answer.statusCode ?? 502, answer.headers);
    pipeline(answer, response, () => undefined);
  });
  passed.on('error', (error) => response.destroy(error));
  response.on('close', () => passed.destroy());
  passed.end(body);
}
