import type { Scope } from '@baton/a2a';
import { RequestMethod, type Type } from '@nestjs/common';
import { FASTIFY_ROUTE_CONSTRAINTS_METADATA } from '@nestjs/platform-fastify/constants.js';
import { ACCESS, type Access, SCOPES } from '../access/access.guard.js';
import { AdminModule } from '../admin/admin.module.js';
import { CardsModule } from '../cards/cards.controller.js';
import { HealthModule } from '../health/health.controller.js';
import { JsonRpcModule } from '../json-rpc/json-rpc.controller.js';
import { RestModule } from '../rest/rest.module.js';

/** A route as its controller declares it. */
export interface Route {
  method: string;
  path: string;
  /** Undefined: only for callers with a token. */
  access: Access | undefined;
  /** The token needs one of these; undefined: the route asks for none. */
  scopes: readonly Scope[] | undefined;
  /** Served on the management port, not on the public one. */
  isManagement: boolean;
}

const routesOfModule = (module: Type): Route[] =>
  (Reflect.getMetadata('controllers', module) as Type[]).flatMap(routesOf);

function routesOf(controller: Type): Route[] {
  const bases = [Reflect.getMetadata('path', controller) as string | string[]].flat();
  return Object.values(Object.getOwnPropertyDescriptors(controller.prototype)).flatMap(({ value }) => {
    const handler = value as object;
    const method = Reflect.getMetadata('method', handler) as RequestMethod | undefined;
    if (method === undefined) return [];
    const path = Reflect.getMetadata('path', handler) as string;
    const declared = (name: symbol): unknown =>
      Reflect.getMetadata(name, handler) ?? Reflect.getMetadata(name, controller);
    return bases.map((base) => ({
      method: RequestMethod[method],
      path: `/${base}/${path}`.replaceAll(/\/+/g, '/').replace(/(.)\/$/, '$1'),
      access: declared(ACCESS) as Access | undefined,
      scopes: declared(SCOPES) as readonly Scope[] | undefined,
      isManagement: Reflect.getMetadata(FASTIFY_ROUTE_CONSTRAINTS_METADATA, handler) !== undefined,
    }));
  });
}

const names = ({ access }: Route): boolean => access !== 'public';

/** Every route of the REST API that is about things of a tenant. */
export const REST_ROUTES: readonly Route[] = routesOfModule(RestModule).filter(names);
/** The paths of all cards. */
export const CARD_PATHS: readonly string[] = routesOfModule(CardsModule)
  .filter(names)
  .map(({ path }) => path);
/** Every route that a controller declares, at either port. */
const ALL_ROUTES: readonly Route[] = [
  RestModule,
  AdminModule,
  JsonRpcModule,
  CardsModule,
  HealthModule,
].flatMap(routesOfModule);
/** Those of the public port. */
export const ROUTES: readonly Route[] = ALL_ROUTES.filter(({ isManagement }) => !isManagement);
/** Those of the management port. */
export const MANAGEMENT_ROUTES: readonly Route[] = ALL_ROUTES.filter(({ isManagement }) => isManagement);
