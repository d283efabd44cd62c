import type { Scope } from '@baton/a2a';
import { RequestMethod, SetMetadata, type Type } from '@nestjs/common';
import { HTTP_CODE_METADATA, ROUTE_ARGS_METADATA } from '@nestjs/common/constants.js';
import { RouteParamtypes } from '@nestjs/common/enums/route-paramtypes.enum.js';
import { FASTIFY_ROUTE_CONSTRAINTS_METADATA } from '@nestjs/platform-fastify/constants.js';
import type { z } from 'zod';
import type { OperatorRole } from '@baton/database';
import { ACCESS, type Access, MORE_SCOPES, ROLES, SCOPES } from '../access/route-access.js';
import { QueryPipe } from './query-pipe.js';

const DESCRIPTION = Symbol('what the API document says of a route');
const ALIAS = Symbol('for whom a controller repeats the routes of its base class');

/** What a route does, takes and answers, besides its other decorators. */
export interface RouteDescription<A = unknown, B = unknown> {
  /** Unique in the API. Generated clients name their methods by it. */
  id: string;
  summary: string;
  /** The schema that validates the body. */
  body?: z.ZodType;
  /** Media types of the body; left out = JSON. */
  bodyTypes?: readonly string[];
  /** What a success is answered with; left out = nothing. */
  answer?: z.ZodType<A>;
  /** Media types of that answer; left out = JSON. */
  answerTypes?: readonly string[];
  /** Every status of a success; left out = the one that Nest answers with. */
  statuses?: readonly number[];
  /** Answers besides a success that do not have the form of all errors. */
  otherAnswers?: Readonly<Record<number, z.ZodType<B>>>;
  /** The form of its errors; left out = that of the REST API. */
  errors?: z.ZodType;
  /** Headers of the request that it reads. */
  requestHeaders?: readonly RequestHeader[];
  /** Headers of a successful answer. */
  answerHeaders?: readonly AnswerHeader[];
}

export type RequestHeader = 'If-Match' | 'If-None-Match' | 'Last-Event-ID';
export type AnswerHeader = 'ETag' | 'Location';

/**
 * Describes a route for the API document. Its body is what `parseFields` takes, and the compiler holds what the method
 * returns against `answer`. Everything else, such as its path, its scopes and its parameters, comes from its other decorators.
 */
export const Describe =
  <A, B = never>(description: RouteDescription<A, B>) =>
  <M extends (...args: never[]) => A | Promise<A | B> | Promise<void>>(
    _controller: object,
    _name: string | symbol,
    method: TypedPropertyDescriptor<M>,
  ): void => {
    if (method.value) SetMetadata(DESCRIPTION, description)(method.value);
  };

/** What a method of a controller was described with. */
export const descriptionOf = (handler: object): RouteDescription | undefined =>
  Reflect.getMetadata(DESCRIPTION, handler) as RouteDescription | undefined;

/**
 * Marks a controller that serves the routes of its base class under another path. The API document lists the routes of the
 * base class only, and has this note in its description.
 */
export const Alias = (note: string) => SetMetadata(ALIAS, note);

/** A route as its controller declares it. */
export interface Route {
  method: string;
  /** As the router has it: `/v1/agents/:agent`. */
  path: string;
  /** Undefined: only for callers with a token. */
  access: Access | undefined;
  /** Roles of an operator that are enough besides `full`. */
  roles: readonly OperatorRole[];
  /** The token needs one of these; undefined: the route asks for none. */
  scopes: readonly Scope[] | undefined;
  /** … and one of these. */
  moreScopes: readonly Scope[] | undefined;
  /** Served on the management port, not on the public one. */
  isManagement: boolean;
  /** Its parameters in the query, by their names. */
  query: ReadonlyMap<string, QueryPipe<unknown>>;
  /** Status of a success, unless it has several. */
  status: number;
  description: RouteDescription | undefined;
  /** The note of `@Alias`. Undefined: the route is no alias. */
  alias: string | undefined;
}

/** The routes of a controller, in the order of its methods. It has those of its base classes too, as in Nest. */
export function routesOf(controller: Type): Route[] {
  const bases = [Reflect.getMetadata('path', controller) as string | string[]].flat();
  const members = Object.entries(membersOf(controller.prototype as object));
  return members.flatMap(([name, { value }]) => {
    const handler = value as object;
    const method = Reflect.getMetadata('method', handler) as RequestMethod | undefined;
    if (method === undefined) return [];
    const path = Reflect.getMetadata('path', handler) as string;
    const declared = (key: symbol): unknown =>
      Reflect.getMetadata(key, handler) ?? Reflect.getMetadata(key, controller);
    const status = Reflect.getMetadata(HTTP_CODE_METADATA, handler) as number | undefined;
    return bases.map((base) => ({
      method: RequestMethod[method],
      path: `/${base}/${path}`.replaceAll(/\/+/g, '/').replace(/(.)\/$/, '$1'),
      access: declared(ACCESS) as Access | undefined,
      roles: (declared(ROLES) ?? []) as readonly OperatorRole[],
      scopes: declared(SCOPES) as readonly Scope[] | undefined,
      moreScopes: declared(MORE_SCOPES) as readonly Scope[] | undefined,
      isManagement: Reflect.getMetadata(FASTIFY_ROUTE_CONSTRAINTS_METADATA, handler) !== undefined,
      query: queryOf(controller, name),
      status: status ?? (method === RequestMethod.POST ? 201 : 200),
      description: descriptionOf(handler),
      alias: Reflect.getMetadata(ALIAS, controller) as string | undefined,
    }));
  });
}

/** The members of a prototype and of those above it. */
function membersOf(prototype: object): Record<string, PropertyDescriptor> {
  const base = Object.getPrototypeOf(prototype) as object | null;
  const inherited = base && base !== Object.prototype ? membersOf(base) : {};
  return { ...inherited, ...Object.getOwnPropertyDescriptors(prototype) };
}

interface Argument {
  data: unknown;
  pipes: readonly unknown[];
}

/** The `@Query(name, pipe)` of a method. */
function queryOf(controller: Type, name: string): Map<string, QueryPipe<unknown>> {
  const args = (Reflect.getMetadata(ROUTE_ARGS_METADATA, controller, name) ?? {}) as Record<string, Argument>;
  return new Map(
    Object.entries(args)
      .filter(([key]) => key.startsWith(`${String(RouteParamtypes.QUERY)}:`))
      .map(([, { data, pipes }]) => {
        const pipe = pipes.find((each) => each instanceof QueryPipe);
        if (!pipe) throw new Error(`${controller.name}.${name}: give @Query('${String(data)}') a QueryPipe`);
        return [String(data), pipe];
      }),
  );
}
