import { Controller } from '@nestjs/common';
import { OperatorOnly } from '../access/route-access.js';
import { OnManagementPort } from '../management/management-port.js';
import { Alias } from '../openapi/route.js';
import { AdminTasksController } from './admin-tasks.controller.js';

/** The path of release 0.2.0 for the task of a tenant. */
@OperatorOnly()
@OnManagementPort()
@Alias(
  '`/v1/admin/tenants/{tenant}/requests/{id}` is another name of `/v1/admin/tenants/{tenant}/tasks/{id}`, for clients of release 0.2.0.',
)
@Controller('v1/admin/tenants/:tenant/requests')
export class AdminRequestsController extends AdminTasksController {}
