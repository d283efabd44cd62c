import { STATUS_CODES } from 'node:http';

/** What is told to callers whose request is none, by the parser's code; all else is malformed. */
const REFUSALS: Record<string, [status: number, message: string]> = {
  ERR_HTTP_REQUEST_TIMEOUT: [408, 'the request took too long to arrive: send it again, in one go'],
  HPE_HEADER_OVERFLOW: [431, 'the headers are larger than 16 KiB: send fewer or shorter ones'],
};
const MALFORMED: [number, string] = [400, 'this is not a well-formed HTTP/1.1 request'];

/** The whole HTTP answer to bytes that never became a request. */
export function refusalText(code = ''): string {
  const [status, message] = REFUSALS[code] ?? MALFORMED;
  const name = STATUS_CODES[status] ?? '';
  const reason = name.toUpperCase().replaceAll(/\W+/g, '_');
  const body = JSON.stringify({ error: { code: status, status: reason, message } });
  return [
    `HTTP/1.1 ${String(status)} ${name}`,
    'content-type: application/json; charset=utf-8',
    `content-length: ${String(Buffer.byteLength(body))}`,
    'connection: close',
    '',
    body,
  ].join('\r\n');
}
