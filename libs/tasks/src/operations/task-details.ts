import { canSee, type Reacher } from '@baton/a2a';
import {
  type Descendant,
  JournalStore,
  type ModelCallRecord,
  type RunErrorRecord,
  type RunRecord,
  RunStore,
  type StepRecord,
  type TaskRelations,
  TaskTreeStore,
} from '@baton/database';
import { Injectable } from '@nestjs/common';

/** Maximum number of model calls of a task that are shown. */
const MAX_MODEL_CALLS = 100;

/** Data of a task that the task of A2A does not have. */
interface DetailsOfTask {
  relations: TaskRelations;
  /** The tasks below it that the caller sees, the nearest first, at most 500. */
  descendants: Descendant[];
  /** The last error in the code of its agent. */
  error: RunErrorRecord | undefined;
  /** At most 100, the newest first. */
  runs: RunRecord[];
  /** The newest 100, the oldest of them first. */
  modelCalls: ModelCallRecord[];
  /** The durable steps. Undefined: the caller may not see them. */
  steps: StepRecord[] | undefined;
}

/** Reads what surrounds a task: its parent and descendants, its runs, its calls of models and its durable steps. */
@Injectable()
export class TaskDetails {
  constructor(
    private readonly taskTree: TaskTreeStore,
    private readonly runs: RunStore,
    private readonly journals: JournalStore,
  ) {}

  /**
   * The details of a task that the caller sees.
   * @param isAuthor whether the caller may change agents, and so sees the durable steps
   */
  async read(
    caller: Reacher & { tenantId: string },
    taskId: string,
    isAuthor: boolean,
  ): Promise<DetailsOfTask> {
    const { tenantId } = caller;
    const relations = await this.taskTree.find(tenantId, taskId);
    const hasChildren = relations.childTaskIds.length > 0;
    const descendants = hasChildren ? await this.taskTree.descendants(tenantId, taskId) : [];
    return {
      relations,
      descendants: descendants.filter((each) => canSee(caller, each)),
      error: await this.runs.lastError(tenantId, taskId),
      runs: await this.runs.ofTask(tenantId, taskId),
      modelCalls: await this.journals.modelCalls(tenantId, taskId, MAX_MODEL_CALLS),
      steps: isAuthor ? await this.journals.steps(tenantId, taskId) : undefined,
    };
  }
}
