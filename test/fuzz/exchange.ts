import http from 'node:http';
import type { HttpCase } from './http-cases.js';

/** A request that takes longer than this has not been answered. */
const ANSWER_MS = 30_000;
/** A stream is cut after this; it has been answered with its headers. */
const STREAM_MS = 150;
const MAX_TEXT = 32_000_000;

export interface HttpAnswer {
  status: number;
  type: string;
  text: string;
}

/** The answer to a case, or why there is none; `not sent` if Node's own client refuses to send it. */
export function exchange(base: string, agent: http.Agent, sent: HttpCase): Promise<HttpAnswer | string> {
  const { method, path, headers, body } = sent;
  return new Promise((resolve) => {
    const length = body === undefined ? {} : { 'content-length': String(body.length) };
    const { hostname, port } = new URL(base);
    let request: http.ClientRequest;
    try {
      request = http.request({ hostname, port, method, path, headers: { ...headers, ...length }, agent });
    } catch {
      resolve('not sent');
      return;
    }
    const timer = setTimeout(() => {
      resolve(`no answer within ${ANSWER_MS} ms`);
      request.destroy();
    }, ANSWER_MS);
    const done = (outcome: HttpAnswer | string): void => {
      clearTimeout(timer);
      resolve(outcome);
    };
    request.on('error', (error: NodeJS.ErrnoException) => {
      const code = error.code ?? error.message;
      // The server has closed the idle connection while this process made cases and could not see it.
      const isStale = request.reusedSocket && (code === 'ECONNRESET' || code === 'EPIPE');
      if (isStale) void exchange(base, agent, sent).then(done);
      else done(code);
    });
    request.on('response', (response) => read(response, done));
    request.end(body);
  });
}

function read(response: http.IncomingMessage, done: (answer: HttpAnswer) => void): void {
  const type = response.headers['content-type'] ?? '';
  let text = '';
  const finish = (): void => done({ status: response.statusCode ?? 0, type, text });
  response.setEncoding('utf8').on('data', (chunk: string) => {
    if (text.length < MAX_TEXT) text += chunk;
  });
  response.on('error', () => undefined).on('close', finish);
  if (type.startsWith('text/event-stream')) setTimeout(() => response.destroy(), STREAM_MS).unref();
}
