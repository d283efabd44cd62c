// Attacks of bench/neighbours.mjs on the connections of the API: half-sent requests, unread answers, gRPC messages.
import { gzipSync } from 'node:zlib';
import { GUESTS_OF_ECHO } from './attacker.mjs';
import {
  grpcCalls,
  gzipBomb,
  halfSent,
  largeHealth,
  post,
  silentConnections,
  unread,
} from './socket-attacks.mjs';

const MIB = 1_048_576;
/** Unpacks to 15 MiB. */
const BOMB = gzipSync(Buffer.alloc(15 * MIB));
/** ListTasksRequest: `page_size` 100, `include_artifacts`. */
const LIST_REQUEST = Buffer.from([0x20, 100, 0x40, 1]);

export const SOCKET_ATTACKS = {
  'gRPC: large health checks': { isMany: true, act: (a) => a.note(largeHealth(a.grpc, a.signal)) },
  'gRPC: gzip to reflection': { isMany: true, act: (a) => a.note(gzipBomb(a.grpc, a.signal)) },
  'gRPC: gzip with a token': {
    isMany: true,
    act: (a) =>
      a.note(
        grpcCalls(
          a.grpc,
          { path: '/lf.a2a.v1.A2AService/GetTask', headers: a.bearer, message: BOMB, isCompressed: true },
          1,
          a.signal,
        ),
      ),
  },
  'half-sent bodies': {
    isMany: true,
    act: (a) => a.note(halfSent(a.url, '/agents/echo', a.bearer, a.signal)),
  },
  'half-sent bodies of guests': {
    isMany: true,
    act: (a) => a.note(halfSent(a.url, '/', { host: GUESTS_OF_ECHO }, a.signal, 1)),
  },
  'half-sent: management port': {
    isMany: true,
    act: (a) => a.note(halfSent(a.management, '/v1/admin/tenants', {}, a.signal)),
  },
  'silent connections': {
    isMany: true,
    act: (a) => a.note(silentConnections([a.url, a.grpc], `127.0.1.${1 + (a.turn++ % 250)}`, 50, a.signal)),
  },
  'unread answers': {
    isMany: true,
    prepare: (a) => a.makeLarge(),
    act: (a) => a.note(unread(a.url, a.largeReads('/agents/echo').repeat(20), a.signal)),
  },
  'unread lists': {
    isMany: true,
    prepare: (a) => a.makeList(),
    act: (a) => a.note(unread(a.url, a.listReads().repeat(20), a.signal)),
  },
  'unread lists of gRPC': {
    isMany: true,
    prepare: (a) => a.makeList(),
    act: (a) =>
      a.note(
        grpcCalls(
          a.grpc,
          {
            path: '/lf.a2a.v1.A2AService/ListTasks',
            headers: { ...a.bearer, 'baton-agent': 'echo' },
            message: LIST_REQUEST,
            isUnread: true,
          },
          20,
          a.signal,
        ),
      ),
  },
  'unread streams': {
    isMany: true,
    prepare: (a) => a.makeLarge(),
    act: (a) => a.note(unread(a.url, post('/agents/echo', a.a2aHeaders, a.streamBody()), a.signal)),
  },
  'unread replays': {
    isMany: true,
    prepare: (a) => a.makeLargeEvents(),
    act: (a) => a.note(unread(a.url, a.replay(), a.signal)),
  },
  'unread answers of gRPC': {
    isMany: true,
    prepare: (a) => a.makeLarge(),
    act: (a) =>
      a.note(
        grpcCalls(
          a.grpc,
          {
            path: '/lf.a2a.v1.A2AService/GetTask',
            headers: { ...a.bearer, 'baton-agent': 'echo' },
            message: a.largeId(),
            isUnread: true,
          },
          20,
          a.signal,
        ),
      ),
  },
};
