import { BearerGuard } from '@baton/identity';
import { Controller, Param, Post, Req, Res, type Type, UseGuards } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { DISPATCH_ROUTES, type DispatchRoute } from './dispatch-routes.js';
import { Dispatcher } from './dispatcher.js';

/** A controller for one row of the table; the row's profile is also on the Fastify route, for the error filter. */
function dispatchController({ path, profile }: DispatchRoute): Type {
  @Controller(path)
  class DispatchController {
    constructor(private readonly dispatcher: Dispatcher) {}

    @Post()
    @UseGuards(BearerGuard)
    @RouteConfig({ profile })
    dispatch(
      @Param('agent') agent: string,
      @Req() request: FastifyRequest,
      @Res() reply: FastifyReply,
    ): Promise<void> {
      return this.dispatcher.dispatch(profile, agent, request, reply);
    }
  }
  return DispatchController;
}

export const DISPATCH_CONTROLLERS: Type[] = DISPATCH_ROUTES.map(dispatchController);
