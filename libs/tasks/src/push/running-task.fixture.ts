import { type EventPayload, type Message, Role, serializePayload, TaskState, textPart } from '@baton/a2a';
import { type ClaimedRun, type Database, type NewEvent, RunStore, TaskStore } from '@baton/database';
import { randomUUID } from 'node:crypto';
import { newTask } from '../turns/new-task.js';
import { userMessage } from '../../../../test/support/agents/turns.js';

const messageOf = (role: Role, text: string): Message =>
  userMessage(text, { messageId: '', contextId: '', taskId: '', role });

interface StartOptions {
  tenantId?: string;
  traceparent?: string;
  /** What the caller says. */
  text?: string;
}

/** A task whose run this test is the worker of. Its log has `submitted` and `working`. */
export class RunningTask {
  private constructor(
    private readonly runs: RunStore,
    private readonly run: ClaimedRun,
    private head: number,
  ) {}

  static async start(database: Database, options: StartOptions = {}) {
    const { tenantId = randomUUID(), traceparent, text = 'hello' } = options;
    const [tasks, runs, runId] = [new TaskStore(database), new RunStore(database), randomUUID()];
    const task = newTask(messageOf(Role.ROLE_USER, text), {});
    await tasks.create({ tenantId, agentId: 'echo', runId, extensions: [], task, traceparent });
    const run = await runs.claim(tenantId, runId, 'worker', 600_000);
    if (!run) throw new Error('not claimed');
    return new RunningTask(runs, run, 2);
  }

  get tenantId(): string {
    return this.run.tenantId;
  }

  get taskId(): string {
    return this.run.taskId;
  }

  /** Says these texts, each as an event, all at once. */
  async say(...texts: string[]): Promise<void> {
    const { taskId } = this;
    const artifactOf = (text: string) => ({
      artifactId: 'reply',
      name: '',
      description: '',
      parts: [textPart(text)],
      metadata: undefined,
      extensions: [],
    });
    await this.append(
      texts.map((text) => ({
        $case: 'artifactUpdate',
        value: {
          taskId,
          contextId: '',
          artifact: artifactOf(text),
          append: true,
          lastChunk: false,
          metadata: undefined,
        },
      })),
    );
  }

  async end(state = TaskState.TASK_STATE_COMPLETED): Promise<void> {
    await this.append([this.statusOf(state)], state);
  }

  /** @param text what the agent says with the status */
  async work(text?: string): Promise<void> {
    const message = text === undefined ? undefined : messageOf(Role.ROLE_AGENT, text);
    await this.append([this.statusOf(TaskState.TASK_STATE_WORKING, message)]);
  }

  private statusOf(state: TaskState, message?: Message): EventPayload {
    const status = { state, message, timestamp: new Date().toISOString() };
    return {
      $case: 'statusUpdate',
      value: { taskId: this.taskId, contextId: '', status, metadata: undefined },
    };
  }

  private async append(payloads: EventPayload[], end?: TaskState): Promise<void> {
    const events: NewEvent[] = payloads.map((payload) => ({ payload, json: serializePayload(payload) }));
    const batch = {
      afterSequence: this.head,
      events,
      ...(end !== undefined && { end: { state: end, outcome: null } }),
    };
    if (!(await this.runs.append(this.run, batch)).ok) throw new Error('not appended');
    this.head += events.length;
  }
}
