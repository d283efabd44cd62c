import { request as open } from 'node:http';

/** An answer with its body as text. */
export interface RawAnswer {
  status: number;
  headers: NodeJS.Dict<string | string[]>;
  text: string;
}

/** A request with headers that `fetch` does not let a caller set, `Host` above all. */
export function rawRequest(
  url: string,
  {
    method = 'GET',
    headers = {},
    body,
    path,
    setHost,
  }: {
    method?: string;
    headers?: Record<string, string>;
    body?: unknown;
    /** In place of that of the URL, as it stands. */
    path?: string;
    /** False: the request has no `Host`. */
    setHost?: boolean;
  },
): Promise<RawAnswer> {
  return new Promise((resolve, reject) => {
    const sent = open(url, { method, headers, ...(path !== undefined && { path }), setHost }, (response) => {
      let text = '';
      response.setEncoding('utf8').on('data', (chunk: string) => (text += chunk));
      response.on('end', () => {
        resolve({ status: response.statusCode ?? 0, headers: response.headers, text });
      });
    });
    sent.on('error', reject);
    sent.end(body === undefined ? undefined : JSON.stringify(body));
  });
}
