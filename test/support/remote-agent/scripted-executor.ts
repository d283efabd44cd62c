import {
  type Artifact,
  type Message,
  type Part,
  Role,
  type Task,
  TaskState,
  type TaskStatus,
} from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  type ExecutionEventBus,
  type RequestContext,
} from '@a2a-js/sdk/server';
import { randomUUID } from 'node:crypto';

export const text = (value: string): Part => ({
  content: { $case: 'text', value },
  metadata: undefined,
  filename: '',
  mediaType: 'text/plain',
});

const textIn = ({ parts }: Message): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');

const ASKS: Record<string, TaskState> = {
  ask: TaskState.TASK_STATE_INPUT_REQUIRED,
  'ask, then reply': TaskState.TASK_STATE_INPUT_REQUIRED,
  'sign in': TaskState.TASK_STATE_AUTH_REQUIRED,
};

/**
 * Obeys the first message of a task:
 * - `count 5`: five chunks `1 `, `2 ` … of one artifact. It stops before every chunk while it is held.
 * - `ask`: a question; the answer then comes back as an artifact. `sign in`: the same with AUTH_REQUIRED.
 * - `wait`: sends a status, and waits until it is canceled. `fail`: fails, with a reason.
 * - `cost 0.25`: answers `done`, and reports that it has cost so much.
 * - `reply`: a bare message; `ask, then reply`: the same after an answer. Anything else: that text, as an artifact.
 *
 * What it has said stands in the stored task, so a server that was started again continues where the other was.
 */
export class ScriptedExecutor implements AgentExecutor {
  /** Chunks of a count that may be said before it is held. */
  private allowed = Infinity;
  private wake: (() => void)[] = [];
  private dead = false;
  private readonly canceled = new Set<string>();

  /** Say no more than this many chunks until it is called again. */
  holdAfter(chunks: number): void {
    this.allowed = chunks;
    this.ring();
  }

  release(): void {
    this.holdAfter(Infinity);
  }

  /** As if its process was killed: it sends nothing more. */
  die(): void {
    this.dead = true;
    this.ring();
  }

  execute = async (context: RequestContext, bus: ExecutionEventBus): Promise<void> => {
    const said = new Speech(context, bus);
    const [first = context.userMessage] = context.task?.history ?? [];
    const script = textIn(first);
    const isReply =
      script.startsWith('reply') || (script === 'ask, then reply' && context.task !== undefined);
    if (isReply) said.reply(`You said: ${script}`);
    else {
      said.begin();
      await this.work(script, said, context);
    }
  };

  private async work(
    script: string,
    said: Speech,
    { task, taskId, userMessage }: RequestContext,
  ): Promise<void> {
    const [, count] = /^count (\d+)/.exec(script) ?? [];
    const asks = ASKS[script];
    const isAnswer = task?.status?.state === asks;
    if (count !== undefined) await this.count(said, Number(count), taskId);
    else if (script.startsWith('cost ')) {
      said.chunk('done', false, true);
      const usage = { 'baton.usage': { cost: script.slice('cost '.length) } };
      said.status(TaskState.TASK_STATE_COMPLETED, undefined, usage);
    } else if (script.startsWith('wait')) await this.waitFor(said, taskId);
    else if (script.startsWith('fail')) said.status(TaskState.TASK_STATE_FAILED, 'The scales are broken');
    else if (asks !== undefined && !isAnswer) said.status(asks, 'Which one?');
    else {
      said.chunk(textIn(userMessage), false, true);
      said.status(TaskState.TASK_STATE_COMPLETED);
    }
  }

  cancelTask = (taskId: string, bus: ExecutionEventBus): Promise<void> => {
    this.canceled.add(taskId);
    this.ring();
    const status = { state: TaskState.TASK_STATE_CANCELED, message: undefined, timestamp: now() };
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId: '', status, metadata: undefined }));
    return Promise.resolve();
  };

  private async count(said: Speech, count: number, taskId: string): Promise<void> {
    for (let i = said.chunks + 1; i <= count; i++) {
      while (i > this.allowed && !this.dead) await this.bell();
      if (this.dead) await new Promise(() => undefined);
      if (this.canceled.has(taskId)) return;
      said.chunk(`${i} `, i > 1, i === count);
      await new Promise((resolve) => setImmediate(resolve));
    }
    said.status(TaskState.TASK_STATE_COMPLETED);
  }

  private async waitFor(said: Speech, taskId: string): Promise<void> {
    said.status(TaskState.TASK_STATE_WORKING, 'I wait');
    while (!this.canceled.has(taskId)) await this.bell();
  }

  private bell(): Promise<void> {
    return new Promise((resolve) => this.wake.push(resolve));
  }

  private ring(): void {
    for (const wake of this.wake.splice(0)) wake();
  }
}

const now = (): string => new Date().toISOString();

/** The output of an executor in one call. */
class Speech {
  private readonly ids: { taskId: string; contextId: string };

  constructor(
    private readonly context: RequestContext,
    private readonly bus: ExecutionEventBus,
  ) {
    this.ids = { taskId: context.taskId, contextId: context.contextId };
  }

  /** Chunks that an earlier server has said. */
  get chunks(): number {
    return this.context.task?.artifacts[0]?.parts.length ?? 0;
  }

  /** As executors do: the task as it is stored, or a new one. */
  begin(): void {
    const { taskId: id, contextId } = this.ids;
    const status: TaskStatus = {
      state: TaskState.TASK_STATE_SUBMITTED,
      message: undefined,
      timestamp: now(),
    };
    const history = [this.context.userMessage];
    const fresh: Task = { id, contextId, status, artifacts: [], history, metadata: undefined };
    this.bus.publish(AgentEvent.task(this.context.task ?? fresh));
    this.status(TaskState.TASK_STATE_WORKING);
  }

  status(state: TaskState, words?: string, metadata?: Record<string, unknown>): void {
    const message = words === undefined ? undefined : this.message(words);
    const status = { state, message, timestamp: now() };
    this.bus.publish(AgentEvent.statusUpdate({ ...this.ids, status, metadata }));
  }

  chunk(words: string, append: boolean, lastChunk: boolean): void {
    const artifact: Artifact = {
      artifactId: 'answer',
      name: 'answer',
      description: '',
      parts: [text(words)],
      metadata: undefined,
      extensions: [],
    };
    this.bus.publish(
      AgentEvent.artifactUpdate({ ...this.ids, artifact, append, lastChunk, metadata: undefined }),
    );
  }

  reply(words: string): void {
    this.bus.publish(AgentEvent.message(this.message(words)));
  }

  private message(words: string): Message {
    return {
      messageId: randomUUID(),
      ...this.ids,
      role: Role.ROLE_AGENT,
      parts: [text(words)],
      metadata: undefined,
      extensions: [],
      referenceTaskIds: [],
    };
  }
}
