import { Controller, Get, Param } from '@nestjs/common';
import type { z } from 'zod';
import { OperatorOnly } from '../access/access.guard.js';
import { OnManagementPort } from '../management/management-port.js';
import { Describe } from '../openapi/route.js';
import { AdminTasksController, tenantTask } from './admin-tasks.controller.js';

/** The path of release 0.2.0 for the task of a tenant: the same as `…/tasks/{id}`. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/tenants/:tenant/requests')
export class AdminRequestsController extends AdminTasksController {
  @Describe({
    id: 'getRequest',
    summary: 'Another name of `/v1/admin/tenants/{tenant}/tasks/{id}`, for clients of release 0.2.0',
    answer: tenantTask,
  })
  @Get(':id')
  override showTask(
    @Param('tenant') slug: string,
    @Param('id') id: string,
  ): Promise<z.infer<typeof tenantTask>> {
    return super.showTask(slug, id);
  }
}
