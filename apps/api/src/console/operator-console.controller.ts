import { Controller, Get, Req, Res } from '@nestjs/common';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { Public } from '../access/route-access.js';
import { sendPlainError } from '../http/errors.js';
import { OnManagementPort } from '../management/management-port.js';
import { ConsoleSite } from './console-site.js';

const OFF = 'there is no console here: CONSOLE_ENABLED is false, or it is not built';

/** The console of operators, with the same files: it calls `/v1/admin` with their tokens. */
@Public()
@OnManagementPort()
@Controller('console')
export class OperatorConsoleController {
  constructor(private readonly site: ConsoleSite) {}

  @Get()
  async page(@Res() reply: FastifyReply): Promise<void> {
    if (this.site.isAvailable()) await this.site.sendPage(reply, 'operators');
    else sendPlainError(reply, 404, OFF);
  }

  @Get('assets/:file')
  async asset(@Req() request: FastifyRequest, @Res() reply: FastifyReply): Promise<void> {
    if (this.site.isAvailable()) await this.site.sendAsset(request, reply);
    else sendPlainError(reply, 404, OFF);
  }

  /** Links into the console. The page reads its own path. */
  @Get('*')
  async deepLink(@Res() reply: FastifyReply): Promise<void> {
    await this.page(reply);
  }
}
