import { ProtocolError } from '@baton/a2a';
import { TaskListing, TenantSettings } from '@baton/tasks';
import { Controller, Get, Param } from '@nestjs/common';
import { z } from 'zod';
import { OperatorOnly } from '../access/access.guard.js';
import { OnManagementPort } from '../management/management-port.js';
import { Describe } from '../openapi/route.js';
import { namesOfTask, taskNames } from '../rest/task-names.js';
import { encodeRun, encodeTaskSummary, runAnswer, taskSummary } from '../rest/tasks/task-json.js';
import { agentError, encodeAgentError } from './agent-error-json.js';

/** A task as operators see it. */
export const tenantTask = taskSummary
  .omit({ approvals: true, status_message: true })
  .extend({
    ...taskNames,
    tenant: z.string().describe('Slug of the tenant'),
    events: z.int().describe('Number of events in its log'),
    runs: z.array(runAnswer).describe('Its newest runs with their workers, at most 100, the newest first'),
    error: agentError,
  })
  .meta({ id: 'TenantTask' });

/** Single tasks of a tenant. */
@OperatorOnly()
@OnManagementPort()
@Controller('v1/admin/tenants/:tenant/tasks')
export class AdminTasksController {
  constructor(
    private readonly settings: TenantSettings,
    private readonly tasks: TaskListing,
  ) {}

  @Describe({
    id: 'getTask',
    summary:
      "Shows the state of a task, its runs with their workers, and the last error in its agent's code, without messages and artifacts",
    answer: tenantTask,
  })
  @Get(':id')
  async showTask(
    @Param('tenant') slug: string,
    @Param('id') id: string,
  ): Promise<z.infer<typeof tenantTask>> {
    const { id: tenantId } = await this.settings.find(slug);
    const found = await this.tasks.summary(tenantId, id);
    if (!found) {
      throw new ProtocolError('not-found', `The tenant has no such task, or it is past its retention`);
    }
    const { task, agentId, sequence } = found.stored;
    const error = encodeAgentError(found.error);
    // Pending approvals and output of the agent are the tenant's, so they are left out.
    const { approvals: _, status_message: __, ...summary } = encodeTaskSummary(task, agentId);
    const runs = await this.tasks.runs(tenantId, id);
    return {
      ...summary,
      ...namesOfTask(id),
      tenant: slug,
      events: sequence,
      runs: runs.map(encodeRun),
      error,
    };
  }
}
