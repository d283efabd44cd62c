import type { FastifyInstance } from 'fastify';
import { RPC_PATHS } from './a2a/dispatch.controller.js';
import { CARD_PATHS } from './a2a/profile-cards.controller.js';
import { NATIVE_PATHS } from './native/native-paths.js';
import { SCHEMA_PATHS } from './native/schema.controller.js';
import { startFakeApi } from './testing/fake-api.js';

/** Paths that name nothing of a tenant's. */
const OPEN = ['/', '/healthz', '/readyz', '/metrics', '/agents/.well-known/:card', ...SCHEMA_PATHS];

/** The paths of a tree as Fastify prints it: four characters a level, each line goes on where its parent ends. */
function pathsOf(tree: string): string[] {
  const above: string[] = [];
  return tree
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [, indent, segment] = /^([\s│├└─]*)(\S+)/.exec(line)!;
      const level = indent!.length / 4;
      const path = (above[level - 1] ?? '') + segment!;
      above[level] = path;
      return path;
    });
}

it('every path is in a table that the isolation walk goes through, or names nothing of a tenant’s', async () => {
  const api = await startFakeApi();
  const fastify: FastifyInstance = api.app.getHttpAdapter().getInstance();
  const paths = pathsOf(fastify.printRoutes({ commonPrefix: false }));
  await api.close();
  const walked = [...RPC_PATHS.map(({ path }) => path), ...NATIVE_PATHS.map(([path]) => path), ...CARD_PATHS];
  expect([...new Set(paths)].sort()).toEqual([...new Set([...walked, ...OPEN])].sort());
});
