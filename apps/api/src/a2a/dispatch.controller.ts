import { type RpcPath, rpcPaths } from '@baton/a2a';
import { BearerGuard } from '@baton/identity';
import { Controller, Param, Post, Req, Res, type Type, UseGuards } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { HostGuard } from '../hosts/host.guard.js';
import { RpcHandler } from './rpc-handler.js';

/** Every path that takes JSON-RPC; the profiles say which. */
export const RPC_PATHS: readonly RpcPath[] = rpcPaths();

/** Who may call: at the root of a host also those its operator lets in without a token. */
const guardOf = ({ path }: RpcPath): typeof BearerGuard => (path === '/' ? HostGuard : BearerGuard);

/** A controller for one path, which is also on the Fastify route, for the error filter. */
function dispatchController(rpcPath: RpcPath): Type {
  @Controller(rpcPath.path)
  class DispatchController {
    constructor(private readonly handler: RpcHandler) {}

    @Post()
    @UseGuards(guardOf(rpcPath))
    @RouteConfig({ rpcPath })
    dispatch(
      @Param('agent') agent: string | undefined,
      @Req() request: FastifyRequest,
      @Res() reply: FastifyReply,
    ): Promise<void> {
      return this.handler.dispatch(rpcPath, agent, request, reply);
    }
  }
  return DispatchController;
}

export const DISPATCH_CONTROLLERS: Type[] = RPC_PATHS.map(dispatchController);
