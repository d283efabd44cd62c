import { Controller, Get, Param } from '@nestjs/common';
import type { z } from 'zod';
import { OperatorOnly, OperatorRoles } from '../access/route-access.js';
import { OnManagementPort } from '../management/management-port.js';
import { Describe } from '../openapi/route.js';
import { OperatorTasks, tenantTask } from './operator-tasks.js';

/** Tasks by their id alone, for operators who do not have the tenant. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/tasks')
export class AdminTaskSearchController {
  constructor(private readonly tasks: OperatorTasks) {}

  @Describe({
    id: 'findTask',
    summary:
      'Finds a task of any tenant by its id, and shows what `/v1/admin/tenants/{tenant}/tasks/{id}` shows',
    answer: tenantTask,
  })
  @OperatorRoles('read')
  @Get(':id')
  async find(@Param('id') id: string): Promise<z.infer<typeof tenantTask>> {
    return this.tasks.find(id);
  }
}
