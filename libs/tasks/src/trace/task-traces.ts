import { canSee, type Reacher } from '@baton/a2a';
import {
  JournalStore,
  type ModelCallRecord,
  PushDeliveryStore,
  RunStore,
  TaskStore,
  TaskTreeStore,
} from '@baton/database';
import { Injectable } from '@nestjs/common';
import type { TraceSpan } from './span.js';
import { traceOf } from './trace-of.js';

/** Statuses, model and tool calls that a trace has: the newest. */
const MAX_EACH = 2_500;

/** What happened in a task, and how long each part took. */
@Injectable()
export class TaskTraces {
  constructor(
    private readonly tasks: TaskStore,
    private readonly runs: RunStore,
    private readonly journals: JournalStore,
    private readonly taskTree: TaskTreeStore,
    private readonly deliveries: PushDeliveryStore,
  ) {}

  /**
   * The trace of a task that the caller sees: at most 100 turns, 2,500 statuses, model and tool calls each, and 500
   * children, the newest; and the newest 10 deliveries of 100 push receivers.
   * @param isAuthor whether the caller may change agents, and so sees the durable steps, and the webhooks of the tenant
   */
  async read(
    caller: Reacher & { tenantId: string },
    taskId: string,
    isAuthor: boolean,
  ): Promise<{ spans: TraceSpan[]; modelCalls: ModelCallRecord[] }> {
    const { tenantId } = caller;
    const [runs, histories, statuses, modelCalls, toolCalls, openCalls, steps, descendants, receivers] =
      await Promise.all([
        this.runs.ofTask(tenantId, taskId),
        this.runs.histories(tenantId, taskId),
        this.tasks.readStatuses(tenantId, taskId, MAX_EACH),
        this.journals.modelCalls(tenantId, taskId, MAX_EACH),
        this.journals.toolCalls(tenantId, taskId, MAX_EACH),
        this.journals.openCalls(tenantId, taskId),
        isAuthor ? this.journals.steps(tenantId, taskId) : [],
        this.taskTree.descendants(tenantId, taskId),
        this.deliveries.ofTask(tenantId, taskId),
      ]);
    const spans = traceOf({
      taskId,
      runs: runs.toReversed(),
      histories,
      statuses,
      modelCalls,
      toolCalls,
      openCalls,
      steps,
      descendants: descendants.filter((each) => canSee(caller, each)),
      receivers: receivers.filter(({ webhookId }) => webhookId === null || isAuthor),
    });
    return { spans, modelCalls };
  }
}
