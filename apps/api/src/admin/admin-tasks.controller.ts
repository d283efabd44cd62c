import { Controller, Get, Param } from '@nestjs/common';
import type { z } from 'zod';
import { OperatorOnly, OperatorRoles } from '../access/route-access.js';
import { OnManagementPort } from '../management/management-port.js';
import { Describe } from '../openapi/route.js';
import { OperatorTasks, tenantTask } from './operator-tasks.js';

/** Single tasks of a tenant. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/tenants/:tenant/tasks')
export class AdminTasksController {
  constructor(private readonly tasks: OperatorTasks) {}

  @Describe({
    id: 'getTask',
    summary:
      "Shows the state of a task, its runs with their workers, and the last error in its agent's code, without messages and artifacts",
    answer: tenantTask,
  })
  @OperatorRoles('read')
  @Get(':id')
  async showTask(
    @Param('tenant') slug: string,
    @Param('id') id: string,
  ): Promise<z.infer<typeof tenantTask>> {
    return this.tasks.show(slug, id);
  }
}
