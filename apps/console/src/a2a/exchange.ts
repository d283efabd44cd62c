/** A request as it went out, and the head of its answer. The token is left out. */
export interface RecordedExchange {
  method: string;
  url: string;
  requestHeaders: [string, string][];
  body: string | undefined;
  status: number;
  responseHeaders: [string, string][];
}

/** A frame of a stream as it came in, or the body of an answer. */
export interface ReceivedFrame {
  id: string | undefined;
  data: string;
  /** Since the request, in ms. */
  afterMs: number;
}

/** Placeholder for the token where a request is shown. */
export const HIDDEN_TOKEN = 'Bearer $BATON_TOKEN';

/** The request as a command. It reads the token from the environment. */
export function curlOf({
  method,
  url,
  requestHeaders,
  body,
}: Pick<RecordedExchange, 'method' | 'url' | 'requestHeaders' | 'body'>): string {
  const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
  return [
    `curl -N -X ${method} ${quoted(url)}`,
    ...requestHeaders.map(([name, value]) =>
      value === HIDDEN_TOKEN ? `-H "${name}: ${value}"` : `-H ${quoted(`${name}: ${value}`)}`,
    ),
    ...(body === undefined ? [] : [`--data-raw ${quoted(body)}`]),
  ].join(' \\\n  ');
}
