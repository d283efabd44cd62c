// HTTP/2 as bytes (RFC 9113), for attacks that no client library lets one make.
import { connect } from 'node:net';

const PREFACE = Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n');
export const TYPE = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  ping: 6,
  window: 8,
  continuation: 9,
  /** Of an unknown extension. Receivers ignore it. */
  unknown: 250,
};
export const END_STREAM = 1;
export const END_HEADERS = 4;

/** One frame. @param type of TYPE */
export function frame(type, payload = Buffer.alloc(0), { flags = 0, stream = 0 } = {}) {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head[3] = type;
  head[4] = flags;
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

/** Headers as HPACK has them, without its tables and without Huffman codes. */
export const hpack = (headers) =>
  Buffer.concat(
    Object.entries(headers).flatMap(([name, value]) => [Buffer.from([0]), text(name), text(String(value))]),
  );

/** A string of HPACK (RFC 7541 §5). */
function text(value) {
  const bytes = Buffer.from(value);
  const length = [];
  if (bytes.length < 127) length.push(bytes.length);
  else {
    length.push(127);
    let rest = bytes.length - 127;
    for (; rest >= 128; rest = rest >> 7) length.push((rest & 127) | 128);
    length.push(rest);
  }
  return Buffer.concat([Buffer.from(length), bytes]);
}

export const uint32 = (value) => {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
};

/** A setting: its number (RFC 9113 §6.5.2) and value. */
export const setting = (id, value) => Buffer.concat([Buffer.from([0, id]), uint32(value)]);

/** The first bytes of a connection. @param windowBytes of each stream: what the peer may send before it is allowed more */
export const hello = (windowBytes) =>
  Buffer.concat([
    PREFACE,
    frame(TYPE.settings, setting(4, windowBytes)),
    frame(TYPE.settings, undefined, { flags: 1 }),
  ]);

/**
 * Sends frames over one connection until it is closed, or the attack is over.
 * @param next makes the next frames: `next(i)`
 * @param isUnread reads nothing from the server
 * @returns how it ended, and how many times frames were sent
 */
export async function sendFrames(url, next, signal, { windowBytes, isUnread = false, max = Infinity } = {}) {
  const { hostname, port } = new URL(url);
  const socket = connect({ host: hostname, port: Number(port) }).setMaxListeners(0);
  const closed = new Promise((resolve) => socket.once('close', resolve));
  const over = new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
  socket.on('error', () => undefined);
  if (isUnread) socket.pause();
  else socket.resume();
  socket.write(hello(windowBytes));
  let sent = 0;
  while (!socket.destroyed && !signal.aborted && sent < max) {
    const drained = socket.write(next(sent++));
    if (!drained) await Promise.race([new Promise((resolve) => socket.once('drain', resolve)), closed, over]);
    else if (sent % 64 === 0) await new Promise((resolve) => setImmediate(resolve));
  }
  if (sent >= max) await Promise.race([closed, over]);
  const outcome = socket.destroyed ? 'closed' : 'open';
  socket.destroy();
  return { outcome, sent };
}
