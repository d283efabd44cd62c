import type { Type } from '@nestjs/common';
import type { FastifyInstance } from 'fastify';
import { AdminModule } from '../../../apps/api/src/admin/admin.module.js';
import { CardsModule } from '../../../apps/api/src/cards/cards.module.js';
import { ConsoleModule } from '../../../apps/api/src/console/console.module.js';
import { HealthModule } from '../../../apps/api/src/health/health.module.js';
import { HttpJsonModule } from '../../../apps/api/src/http-json/http-json.module.js';
import { JsonRpcModule } from '../../../apps/api/src/json-rpc/json-rpc.module.js';
import { McpModule } from '../../../apps/api/src/mcp/mcp.module.js';
import { OpenApiModule } from '../../../apps/api/src/openapi/open-api.module.js';
import { type Route, routesOf } from '../../../apps/api/src/openapi/route.js';
import { RestModule } from '../../../apps/api/src/rest/rest.module.js';

export type { Route } from '../../../apps/api/src/openapi/route.js';

const routesOfModule = (module: Type): Route[] =>
  (Reflect.getMetadata('controllers', module) as Type[]).flatMap(routesOf);

/**
 * The paths of Fastify's own table, as it prints them: four characters a level, each line continues where its parent ends. Those of
 * the management port have a constraint after their methods.
 */
export function pathsOf(fastify: FastifyInstance): Pick<Route, 'path' | 'isManagement'>[] {
  const above: string[] = [];
  return fastify
    .printRoutes({ commonPrefix: false })
    .trimEnd()
    .split('\n')
    .map((line) => {
      const [, indent, segment] = /^([\s│├└─]*)(\S+)/.exec(line)!;
      const level = indent!.length / 4;
      const path = (above[level - 1] ?? '') + segment!;
      above[level] = path;
      // It prints an escaped colon as a colon, and a wildcard without the slash before it.
      return {
        path: path.replace(/\/message:(?!:)/, '/message::').replace(/(?<=[^/])\*$/, '/*'),
        isManagement: line.includes('"listener"'),
      };
    });
}

const names = ({ access }: Route): boolean => access !== 'public';

/** Every route of the REST API that is about things of a tenant. */
export const REST_ROUTES: readonly Route[] = routesOfModule(RestModule).filter(names);
/** The paths of all cards. */
export const CARD_PATHS: readonly string[] = routesOfModule(CardsModule)
  .filter(names)
  .map(({ path }) => path);
/** The paths of MCP. */
export const MCP_PATHS: readonly string[] = routesOfModule(McpModule)
  .map(({ path }) => path)
  .filter((path) => path.endsWith('/mcp') && !path.startsWith('/.well-known/'));
/** Every route that a controller declares, at either port. */
const ALL_ROUTES: readonly Route[] = [
  RestModule,
  OpenApiModule,
  AdminModule,
  JsonRpcModule,
  HttpJsonModule,
  McpModule,
  CardsModule,
  HealthModule,
  ConsoleModule,
].flatMap(routesOfModule);
/** Those of the public port. */
export const ROUTES: readonly Route[] = ALL_ROUTES.filter(({ isManagement }) => !isManagement);
/** Those of the management port. */
export const MANAGEMENT_ROUTES: readonly Route[] = ALL_ROUTES.filter(({ isManagement }) => isManagement);
