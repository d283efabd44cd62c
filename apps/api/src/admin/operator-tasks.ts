import { ProtocolError } from '@baton/a2a';
import { TaskListing, TenantSettings } from '@baton/tasks';
import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import { namesOfTask, taskNames } from '../rest/task-names.js';
import { encodeRun, runAnswer } from '../rest/tasks/run-json.js';
import { encodeTaskSummary, taskSummary } from '../rest/tasks/task-summary-json.js';
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

/** Tasks of all tenants, without what belongs to the tenants. */
@Injectable()
export class OperatorTasks {
  constructor(
    private readonly settings: TenantSettings,
    private readonly tasks: TaskListing,
  ) {}

  /** A task of a tenant. Throws `not-found` if there is none. */
  async show(slug: string, id: string): Promise<z.infer<typeof tenantTask>> {
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

  /** A task by its id alone, in any tenant. Throws `not-found`, and `invalid-params` if several tenants have a task with this id. */
  async find(id: string): Promise<z.infer<typeof tenantTask>> {
    return this.show(await this.tasks.tenantOf(id), id);
  }
}
