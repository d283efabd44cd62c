import { type Agent, type Message, TaskState, dataPart, textOf, textPart } from '@baton/a2a';
import {
  type AgentOutput,
  type AgentRuntime,
  ChildRefusal,
  type ChildTask,
  type ChildTasks,
  Suspension,
  type Turn,
} from '@baton/agents';
import { EventEmitter, once } from 'node:events';

/** The order to a test's agents, as the text of a message in JSON. */
export interface Order {
  /** Ask this agent so often, each time with the message; fail with the reason if that is refused. */
  ask?: {
    agent: string;
    message: Order;
    times?: number;
    depth?: number;
    tasks?: number;
    taskId?: string;
    /** The answer to a child that asks back. */
    answer?: Order;
    /** What a person says to the children that ask for approval. */
    approved?: { callId: string; approved: boolean };
  };
  /** Say nothing until the run is stopped. */
  wait?: boolean;
  /** Ask the caller before going on. */
  question?: boolean;
  /** Ask a person to approve the call that has this id; the answer is what the agent completes with. */
  approval?: string;
}

/** An agent that does what its messages say, and completes with what its children have come to. */
export class AskingRuntime implements AgentRuntime {
  readonly name = 'asking';
  /** The tasks whose agent waits to be stopped at this moment. */
  readonly waiting = new Set<string>();
  private readonly deaths = new EventEmitter();

  constructor(
    private readonly children: () => ChildTasks,
    private readonly find: (tenantId: string, slug: string) => Promise<Agent | undefined>,
  ) {}

  /** Ends the agent of a task that waits, as the death of its worker does. */
  end(taskId: string): void {
    this.deaths.emit(taskId);
  }

  async *run(turn: Turn, signal: AbortSignal): AsyncGenerator<AgentOutput> {
    const answer = turn.message.parts.find(({ content }) => content?.$case === 'data')?.content?.value;
    if (answer) {
      yield said(turn, TaskState.TASK_STATE_COMPLETED, JSON.stringify(answer));
      return;
    }
    const text = textOf(turn.message.parts);
    const { ask, wait, question, approval } = JSON.parse(text) as Order;
    if (wait) {
      this.waiting.add(turn.task.id);
      if (!signal.aborted) await Promise.race([once(signal, 'abort'), once(this.deaths, turn.task.id)]);
      this.waiting.delete(turn.task.id);
      return;
    }
    if (question) yield said(turn, TaskState.TASK_STATE_INPUT_REQUIRED, 'which one?');
    if (approval !== undefined) {
      const request = { callId: approval, tool: 'pay', input: {} };
      yield said(turn, TaskState.TASK_STATE_INPUT_REQUIRED, 'may I?', [dataPart({ approval: request })]);
    }
    if (!ask) {
      yield said(turn, TaskState.TASK_STATE_COMPLETED, `did ${turn.attempt}`);
      return;
    }
    try {
      yield said(turn, TaskState.TASK_STATE_COMPLETED, await this.askAll(turn, ask, signal));
    } catch (error) {
      if (!(error instanceof ChildRefusal)) throw error;
      yield said(turn, TaskState.TASK_STATE_FAILED, error.message);
    }
  }

  private async askAll(turn: Turn, ask: NonNullable<Order['ask']>, signal: AbortSignal): Promise<string> {
    const { agent: slug, message, times = 1, depth = 5, tasks = 50, taskId, answer, approved } = ask;
    const agent = await this.find(turn.tenantId, slug);
    if (!agent) throw new Error('no such agent');
    const call = async (callId: string, lane: number, said: Order, child?: string): Promise<ChildTask> =>
      this.children().call(turn, {
        callId,
        lane,
        agent,
        message: JSON.stringify(said),
        limits: { depth, tasks },
        signal,
        ...(child !== undefined && { taskId: child }),
      });
    const made: ChildTask[] = [];
    for (let i = 0; i < times; i++) made.push(await call(`call-${i}`, i + 1, message, taskId));
    waitFor(made);
    const asking = made.filter(({ task }) => task.status?.state === TaskState.TASK_STATE_INPUT_REQUIRED);
    const answered = answer
      ? await Promise.all(asking.map(({ task }) => call('answer', 1, answer, task.id)))
      : [];
    waitFor(answered);
    const last = answered.length > 0 ? answered : made;
    if (approved) {
      for (const [i, child] of made.entries()) {
        const asked = { callId: `call-${i}`, agent, taskId: child.task.id, signal };
        last[i] = await this.children().answer(turn, { ...asked, number: 1, decisions: [approved] });
      }
      waitFor(last);
    }
    return last
      .map((child) => `${child.depth} ${textOf(child.task.status?.message?.parts ?? [])}`)
      .join(', ');
  }
}

function waitFor(children: readonly ChildTask[]): void {
  const [first, ...others] = children.filter(({ isAtWork }) => isAtWork).map(({ task }) => task.id);
  if (first !== undefined) throw new Suspension([first, ...others]);
}

const said = (turn: Turn, state: TaskState, text: string, more: Message['parts'] = []): AgentOutput => ({
  $case: 'statusUpdate',
  value: {
    taskId: turn.task.id,
    contextId: turn.task.contextId,
    status: {
      state,
      message: {
        ...turn.message,
        messageId: `${turn.runId}-said`,
        parts: [textPart(text), ...more],
      },
      timestamp: undefined,
    },
    metadata: undefined,
  },
});
