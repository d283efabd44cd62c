// Several attacks of bench/neighbours.mjs at the same time: what one of them leaves free, the next one takes.
import { HTTP2_ATTACKS } from './http2.mjs';
import { SOCKET_ATTACKS } from './sockets.mjs';
import { STREAM_ATTACKS } from './streams.mjs';

/** Each of the callers runs all of the attacks, side by side. */
function mixOf(attacks) {
  const parts = (a) => (a.parts ??= attacks.map((attack) => ({ attack, attacker: Object.create(a) })));
  return {
    isMany: true,
    prepare: async (a) => {
      for (const { attack, attacker } of parts(a)) await attack.prepare?.(attacker);
    },
    act: (a) =>
      Promise.all(
        parts(a).map(async ({ attack, attacker }) => {
          while (!a.signal.aborted) await attack.act(attacker);
        }),
      ),
  };
}

export const MIXED_ATTACKS = {
  'mix: unread, half-sent and idle': mixOf([
    SOCKET_ATTACKS['unread answers'],
    SOCKET_ATTACKS['unread streams'],
    SOCKET_ATTACKS['unread replays'],
    SOCKET_ATTACKS['unread answers of gRPC'],
    SOCKET_ATTACKS['half-sent bodies'],
    STREAM_ATTACKS['unread live streams'],
    STREAM_ATTACKS['unread MCP streams'],
    STREAM_ATTACKS['unread live streams of gRPC'],
    HTTP2_ATTACKS['HTTP/2: idle streams'],
  ]),
};
