import { TaskListing } from '@baton/tasks';
import { Controller, Get, Param } from '@nestjs/common';
import type { z } from 'zod';
import { OperatorOnly } from '../access/access.guard.js';
import { OnManagementPort } from '../management/management-port.js';
import { Describe } from '../openapi/route.js';
import { AdminTasksController, tenantTask } from './admin-tasks.controller.js';

/** Tasks by their id alone, for operators who do not know the tenant. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/tasks')
export class AdminTaskSearchController {
  constructor(
    private readonly listing: TaskListing,
    private readonly tasks: AdminTasksController,
  ) {}

  @Describe({
    id: 'findTask',
    summary:
      'Finds a task of any tenant by its id, and shows what `/v1/admin/tenants/{tenant}/tasks/{id}` shows',
    answer: tenantTask,
  })
  @Get(':id')
  async find(@Param('id') id: string): Promise<z.infer<typeof tenantTask>> {
    return this.tasks.showTask(await this.listing.tenantOf(id), id);
  }
}
