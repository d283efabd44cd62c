import { type RpcPath, rpcPaths } from '@baton/a2a';
import { Controller, Module, Param, Post, Req, Res, type Type } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { AllowGuests } from '../access/access.guard.js';
import { CoreModule } from '../core/core.module.js';
import type { ErrorFormat, SendError } from '../http/errors.js';
import { HttpModule } from '../http/http.module.js';
import { RpcAnswer } from './rpc-answer.js';
import { RpcHandler } from './rpc-handler.js';

/** Every path that takes JSON-RPC; the profiles declare them. */
const RPC_PATHS: readonly RpcPath[] = rpcPaths();

/** A controller for one path. */
function controllerAt(path: RpcPath): Type {
  const config: ErrorFormat = { sendError: errorFormatOf(path) };

  @Controller(path.path)
  class JsonRpcController {
    constructor(private readonly handler: RpcHandler) {}

    @Post()
    @RouteConfig(config)
    handle(
      @Param('agent') agent: string | undefined,
      @Req() request: FastifyRequest,
      @Res() reply: FastifyReply,
    ): Promise<void> {
      return this.handler.handle(path, agent, { request, reply });
    }
  }
  // Guests come in at the root of a host.
  if (path.path === '/') AllowGuests()(JsonRpcController);
  return JsonRpcController;
}

const errorFormatOf =
  (path: RpcPath): SendError =>
  (request, reply, failure) =>
    RpcAnswer.at(path, { request, reply }).error(failure);

/** How errors look at a path that has no route, because a name in it can't be read. Its beginning decides. */
export function rpcErrorFormatAt({ method, url }: FastifyRequest): SendError | undefined {
  if (method !== 'POST') return undefined;
  const path = RPC_PATHS.find(
    ({ path }) => path.includes(':') && url.startsWith(path.slice(0, path.indexOf(':'))),
  );
  return path && errorFormatOf(path);
}

/** A2A in JSON-RPC, at the paths of every profile. */
@Module({
  imports: [CoreModule, HttpModule],
  controllers: RPC_PATHS.map(controllerAt),
  providers: [RpcHandler],
})
export class JsonRpcModule {}
