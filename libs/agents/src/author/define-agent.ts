import { type Message, type Part, Role, type Task, TaskState } from '@a2a-js/sdk';
import {
  AgentEvent,
  type AgentExecutor,
  type AgentExecutionEvent,
  type ExecutionEventBus,
  type RequestContext,
} from '@a2a-js/sdk/server';
import { randomUUID } from 'node:crypto';
import type { DurableSteps, InputOptions, TenantSecrets } from '../runtimes/executor/child/steps.js';
import { stepsOf } from './steps-of.js';
import { textOf } from './text-of.js';

/** One turn of a task, as the function of an agent gets it. Its functions need no `this`. */
export interface AgentTurn extends DurableSteps, TenantSecrets {
  /** All texts of the message. */
  text: string;
  message: Message;
  taskId: string;
  contextId: string;
  /** The stored task, from its second turn on. */
  task: Task | undefined;
  /** Aborts when the task is canceled. */
  signal: AbortSignal;
  /** Adds a text to the answer. Callers read it while the answer grows. */
  stream: (text: string) => void;
  /** Asks the caller and resolves with the text of the answer: `waitForInput` for texts. */
  ask: (name: string, question: string, options?: InputOptions) => Promise<string>;
  /** Publishes any event of the SDK. */
  publish: (event: AgentExecutionEvent) => void;
}

/** The answer of a turn: a text, or a text and a JSON value. Nothing: the turn completes without a further text. */
export type AgentAnswer = string | { text?: string; data?: unknown } | undefined;

/**
 * An agent from one function: the task completes with what it returns, and fails if it throws.
 *
 * @example export default defineAgent(({ text }) => `Hello, ${text}!`);
 * @returns an `AgentExecutor` of `@a2a-js/sdk`, to be the default export of the agent's module
 */
export function defineAgent(run: (turn: AgentTurn) => AgentAnswer | Promise<AgentAnswer>): AgentExecutor {
  const running = new Map<string, AbortController>();
  return {
    async execute(request: RequestContext, bus: ExecutionEventBus): Promise<void> {
      const { taskId } = request;
      const canceled = new AbortController();
      running.set(taskId, canceled);
      const reply = new TurnReply(request, bus);
      try {
        reply.complete(await run(turnOf(request, bus, reply, canceled.signal)));
      } catch (error) {
        if (!canceled.signal.aborted) throw error;
        reply.publishStatus(TaskState.TASK_STATE_CANCELED);
      } finally {
        running.delete(taskId);
      }
    },
    async cancelTask(taskId: string): Promise<void> {
      running.get(taskId)?.abort();
      return Promise.resolve();
    },
  };
}

function turnOf(
  request: RequestContext,
  bus: ExecutionEventBus,
  reply: TurnReply,
  signal: AbortSignal,
): AgentTurn {
  const { taskId, contextId, userMessage: message, task } = request;
  const {
    step,
    sleep,
    waitForInput,
    callAgent,
    continueAs,
    lastState,
    patched,
    secret,
    model,
    history,
    contextState,
    tools,
  } = stepsOf(request);
  return {
    text: textOf(message),
    message,
    taskId,
    contextId,
    task,
    signal,
    stream: (text) => reply.stream(text),
    ask: async (name, question, options) => textOf(await waitForInput(name, question, options)),
    publish: (event) => bus.publish(event),
    step,
    sleep,
    patched,
    waitForInput,
    callAgent,
    continueAs,
    lastState,
    secret,
    model,
    history,
    contextState,
    tools,
  };
}

/** Publishes the answer of a turn as an artifact and a status. */
class TurnReply {
  private hasBegun = false;
  /** True: the next text is appended to the artifact `reply`. False: it creates the artifact. */
  private appends: boolean;

  constructor(
    private readonly request: RequestContext,
    private readonly bus: ExecutionEventBus,
  ) {
    const { taskId: id, contextId, userMessage, task } = request;
    this.appends = stepsOf(request).lastState !== undefined;
    if (task) return;
    // The server of the SDK creates the task from this event. Baton has created it before.
    const status = { state: TaskState.TASK_STATE_SUBMITTED, message: undefined, timestamp: undefined };
    const history = [userMessage];
    bus.publish(AgentEvent.task({ id, contextId, status, artifacts: [], history, metadata: undefined }));
  }

  stream(text: string, lastChunk = false): void {
    const { taskId, contextId } = this.request;
    const artifact = {
      artifactId: 'reply',
      name: 'reply',
      description: '',
      parts: [partOf({ $case: 'text', value: text })],
      metadata: undefined,
      extensions: [],
    };
    const append = this.appends;
    this.hasBegun = true;
    this.appends = true;
    this.bus.publish(
      AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk, metadata: undefined }),
    );
  }

  complete(answer: AgentAnswer): void {
    const { text, data }: { text?: string; data?: unknown } =
      typeof answer === 'object' ? answer : { ...(answer !== undefined && { text: answer }) };
    if (this.hasBegun) this.stream(text ?? '', true);
    const parts = [
      ...(text === undefined || this.hasBegun ? [] : [partOf({ $case: 'text', value: text })]),
      ...(data === undefined ? [] : [partOf({ $case: 'data', value: data })]),
    ];
    this.publishStatus(TaskState.TASK_STATE_COMPLETED, parts);
  }

  publishStatus(state: TaskState, parts: Part[] = []): void {
    const { taskId, contextId } = this.request;
    const message: Message | undefined =
      parts.length === 0
        ? undefined
        : {
            messageId: randomUUID(),
            taskId,
            contextId,
            role: Role.ROLE_AGENT,
            parts,
            metadata: undefined,
            extensions: [],
            referenceTaskIds: [],
          };
    const status = { state, message, timestamp: undefined };
    this.bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status, metadata: undefined }));
  }
}

const partOf = (content: Part['content']): Part => ({
  content,
  filename: '',
  mediaType: '',
  metadata: undefined,
});
