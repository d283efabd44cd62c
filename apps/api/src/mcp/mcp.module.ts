import { TasksModule } from '@baton/tasks';
import { Controller, Module, Param, Post, Req, Res } from '@nestjs/common';
import { RouteConfig } from '@nestjs/platform-fastify';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { ProtectedResource, RequireScope } from '../access/route-access.js';
import { AccessModule } from '../access/access.module.js';
import { CoreModule } from '../core/core.module.js';
import type { ErrorFormat } from '../http/errors.js';
import { HttpModule } from '../http/http.module.js';
import { McpHandler, sendMcpError } from './mcp-handler.js';
import { McpOperations } from './mcp-operations.js';
import { ProtectedResourceController } from './protected-resource.controller.js';
import { ServerMethods } from './server-methods.js';
import { TaskMethods } from './task-methods.js';
import { TaskResources } from './task-resources.js';
import { ToolCalls } from './tool-calls.js';

const ERRORS: ErrorFormat = { sendError: sendMcpError };

/** MCP with every agent that the caller may call, and with one agent. */
@ProtectedResource()
@RequireScope('agents:call', 'tasks:read')
@Controller()
class McpController {
  constructor(private readonly handler: McpHandler) {}

  @Post('mcp')
  @RouteConfig(ERRORS)
  all(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    return this.handler.handle(undefined, { request, reply });
  }

  @Post('agents/:agent/mcp')
  @RouteConfig(ERRORS)
  one(
    @Param('agent') agent: string,
    @Req() request: FastifyRequest,
    @Res() reply: FastifyReply,
  ): Promise<void> {
    return this.handler.handle(agent, { request, reply });
  }
}

/** Agents as tools of MCP. */
@Module({
  imports: [AccessModule, CoreModule, HttpModule, TasksModule],
  controllers: [McpController, ProtectedResourceController],
  providers: [McpHandler, McpOperations, ServerMethods, TaskMethods, TaskResources, ToolCalls],
})
export class McpModule {}
