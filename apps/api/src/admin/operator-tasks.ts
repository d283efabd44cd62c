import { ProtocolError } from '@baton/a2a';
import { RunStore, TaskStore } from '@baton/database';
import { TenantSettings } from '@baton/tasks';
import { Injectable } from '@nestjs/common';
import { z } from 'zod';
import { namesOfTask, taskNames } from '../rest/task-names.js';
import { encodeRun, runAnswer } from '../rest/tasks/run-json.js';
import { encodeTaskSummary, taskSummary } from '../rest/tasks/task-summary-json.js';
import { agentError, encodeAgentError } from './agent-error-json.js';

/** Maximum number of tenants that an error names. */
const MAX_NAMED = 10;

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
    private readonly tasks: TaskStore,
    private readonly runs: RunStore,
  ) {}

  /** A task of a tenant. Throws `not-found` if there is none. */
  async show(slug: string, id: string): Promise<z.infer<typeof tenantTask>> {
    const { id: tenantId } = await this.settings.find(slug);
    const stored = await this.tasks.get(tenantId, id, { historyLength: 0, artifacts: false });
    if (!stored) {
      throw new ProtocolError('not-found', `The tenant has no such task, or it is past its retention`);
    }
    const { task, agentId, sequence } = stored;
    const error = encodeAgentError(await this.runs.lastError(tenantId, id));
    // Pending approvals and output of the agent are the tenant's, so they are left out.
    const { approvals: _, status_message: __, ...summary } = encodeTaskSummary(task, agentId);
    const runs = await this.runs.ofTask(tenantId, id);
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
    const [slug, ...others] = await this.tasks.tenantsOf(id);
    if (slug === undefined)
      throw new ProtocolError('not-found', 'There is no such task, or retention has deleted it');
    if (others.length === 0) return this.show(slug, id);
    throw ProtocolError.invalidParams(
      'id',
      `is the id of tasks of the tenants ${[slug, ...others].slice(0, MAX_NAMED).join(', ')}: name the tenant, too`,
    );
  }
}
