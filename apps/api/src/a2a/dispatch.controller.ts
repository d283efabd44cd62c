import { type RpcPath, rpcPaths } from '@baton/a2a';
import { Controller, Param, Post, Req, Res, type Type } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AllowGuests } from '../access/access.guard.js';
import type { ErrorFormat, SendError } from '../http/errors.js';
import { RpcAnswer } from './rpc-answer.js';
import { RpcHandler } from './rpc-handler.js';

/** Every path that takes JSON-RPC; the profiles declare them. */
const RPC_PATHS: readonly RpcPath[] = rpcPaths();

/** A controller for one path. */
function dispatchController(rpcPath: RpcPath): Type {
  const config: ErrorFormat = { sendError: errorFormatOf(rpcPath) };

  @Controller(rpcPath.path)
  class DispatchController {
    constructor(private readonly handler: RpcHandler) {}

    @Post()
    @RouteConfig(config)
    dispatch(
      @Param('agent') agent: string | undefined,
      @Req() request: FastifyRequest,
      @Res() reply: FastifyReply,
    ): Promise<void> {
      return this.handler.dispatch(rpcPath, agent, request, reply);
    }
  }
  // Guests come in at the root of a host.
  if (rpcPath.path === '/') AllowGuests()(DispatchController);
  return DispatchController;
}

export const DISPATCH_CONTROLLERS: Type[] = RPC_PATHS.map(dispatchController);

function errorFormatOf(path: RpcPath): SendError {
  return (request, reply, failure) => new RpcAnswer(path, request, reply).error(failure);
}

/** How errors look at a path that has no route, because a name in it can't be read. Its beginning decides. */
export function rpcErrorFormatAt({ method, url }: FastifyRequest): SendError | undefined {
  if (method !== 'POST') return undefined;
  const path = RPC_PATHS.find(
    ({ path }) => path.includes(':') && url.startsWith(path.slice(0, path.indexOf(':'))),
  );
  return path && errorFormatOf(path);
}
