import { setTimeout as delay } from 'node:timers/promises';
import {
  type ApiAddress,
  type Caller,
  MCP_META,
  type Outcome,
  type Request,
  type StreamEnd,
} from './caller.js';
import { endsTurn, isTerminal, type Outgoing, type SendHow, stateIn } from './dialects.js';
import type { Frame, TaskRecord, Viewer } from './observations.js';
import type { TaskPlan } from './task-plan.js';

const NOT_CANCELABLE = -32002;
const UNSUPPORTED = -32004;

/** Where the load runs, as far as one caller sees it. */
export interface Surroundings {
  /** The API processes that are up, or about to be; at least one. Rejects when it is no use to wait for one. */
  apis(): Promise<readonly ApiAddress[]>;
  /** Aborted when it is no use to wait any longer. */
  giveUp: AbortSignal;
  messageId(plan: TaskPlan, turn: number): string;
}

/** A task as MCP shows it. */
interface McpTask {
  taskId: string;
  status: string;
  result?: { content: { text: string }[] };
}

/** The harness has waited long enough for this task. */
class GaveUp extends Error {}

/** Drives one task to its end as a careful caller would, and writes down what it sees. */
export class Scenario {
  readonly record: TaskRecord;
  private lastApi: number | undefined;

  constructor(
    private readonly plan: TaskPlan,
    private readonly caller: Caller,
    private readonly around: Surroundings,
    tenant: string,
  ) {
    const { name, kind, generation, expected } = plan;
    this.record = {
      name,
      kind,
      tenant,
      generation,
      expected,
      messageIds: [],
      viewers: [],
      answeredStates: [],
      finished: false,
    };
  }

  /** Resolves when the task has ended, or was given up. */
  async run(): Promise<TaskRecord> {
    try {
      await this.drive();
      this.record.finished = true;
    } catch (error) {
      if (!(error instanceof GaveUp)) throw error;
    }
    return this.record;
  }

  private async drive(): Promise<void> {
    const { kind, expected } = this.plan;
    if (kind === 'block') return this.sendAndWait();
    if (kind === 'later' || kind === 'burst') return this.sendAndSubscribe();
    if (kind === 'mcp') return this.callTool();
    const turns = expected.agent === 'scribe' ? expected.turns.length : 1;
    const companion = this.companion();
    for (let turn = 1; turn <= turns; turn++) {
      // A question may be answered by a stream or by a blocking send.
      const blocks = kind === 'turns' && turn > 1 && this.plan.random.chance(0.4);
      if (blocks) await this.answerAndWait(turn);
      else await this.streamTurn(turn);
      // It ended before its content was complete: the checks report it.
      if (turn < turns && this.endTold() !== undefined) break;
    }
    await companion;
  }

  /** A blocking send: its answer is the task as its turn left it. */
  private async sendAndWait(): Promise<void> {
    const said = await this.send(1, 'block');
    if (!endsTurn(said)) await this.untilEnded();
  }

  private async sendAndSubscribe(): Promise<void> {
    await this.send(1, 'at-once');
    const companion = this.companion();
    const fromStart = this.plan.random.chance(0.5);
    await this.follow(
      this.viewer('subscriber', fromStart ? { kind: 'log', after: 0 } : { kind: 'snapshot' }),
    );
    await companion;
  }

  /** The call makes one task, however often it is sent. Its result is that of the agent, at every API. */
  private async callTool(): Promise<void> {
    const { expected } = this.plan;
    const { messageId, text, metadata } = this.message(1);
    const _meta = { ...MCP_META, 'claudecode/toolUseId': messageId, 'baton/metadata': metadata };
    const params = { name: expected.agent, arguments: { message: text }, _meta };
    let task = await this.askMcp('tools/call', expected.agent, params);
    const { taskId } = task;
    this.record.taskId = taskId;
    const companion = this.companion();
    // The handle has no result, even if the task has ended before the call was sent again.
    do {
      await this.pause();
      task = await this.askMcp('tasks/get', taskId, { taskId, _meta: MCP_META });
    } while (task.status === 'working');
    this.record.answeredStates.push(task.status);
    const said = task.result?.content.map((block) => block.text).join('');
    const wanted = expected.agent === 'echo' ? expected.text.repeat(expected.chunks) : undefined;
    if (task.status === 'completed' && said !== wanted) {
      this.caller.tellWrong(
        await this.api(),
        this.whole({ method: 'tasks/get', params: {} }),
        `a result of MCP is ${said}`,
      );
    }
    await companion;
  }

  /** Asks until there is an answer. */
  private async askMcp(method: string, mcpName: string, params: object): Promise<McpTask> {
    for (;;) {
      const outcome = await this.caller.call(await this.api(), this.whole({ method, params, mcpName }));
      if (outcome.kind === 'result') return outcome.result as McpTask;
      await this.pause();
    }
  }

  private async answerAndWait(turn: number): Promise<void> {
    const state = await this.send(turn, 'block');
    if (!endsTurn(state)) await this.untilTurnEnded();
  }

  /** Send until there is an answer. @returns the state it shows */
  private async send(turn: number, how: SendHow): Promise<string | undefined> {
    const message = this.message(turn);
    for (;;) {
      const outcome = await this.call(this.dialect.methods.send, this.dialect.sendParams(message, how), [
        UNSUPPORTED,
      ]);
      if (outcome.kind === 'result' && outcome.said.kind === 'task') {
        this.record.taskId ??= outcome.said.taskId;
        this.record.answeredStates.push(outcome.said.state);
        return outcome.said.state;
      }
      if (await this.isTaken(message.messageId)) return undefined;
      await this.pause();
    }
  }

  /** A streaming send and, if it breaks, its resumption, until the turn is over. */
  private async streamTurn(turn: number): Promise<void> {
    const message = this.message(turn);
    const { methods } = this.dialect;
    for (;;) {
      const viewer = this.viewer(`sender of turn ${turn}`, { kind: 'snapshot' });
      const request = { method: methods.stream, params: this.dialect.sendParams(message, 'stream') };
      await this.stream({ ...request, understood: [UNSUPPORTED] }, viewer);
      if (viewer.frames.length > 0) return this.follow(viewer);
      this.record.viewers.pop();
      if (await this.isTaken(message.messageId)) return this.untilTurnEnded();
      await this.pause();
    }
  }

  /** Read on, on one API after another, until the turn is over. */
  private async follow(viewer: Viewer, until: 'turn' | 'task' = 'turn'): Promise<void> {
    const isOver = until === 'turn' ? endsTurn : isTerminal;
    while (!isOver(lastState(viewer))) {
      const last = viewer.frames.at(-1)?.sequence;
      const after = last ?? (viewer.from.kind === 'log' ? viewer.from.after : undefined);
      const end = await this.subscribe(viewer, after);
      // Only a task that has ended cannot be subscribed to without a cursor.
      if (end.kind === 'error' && end.code === UNSUPPORTED && after === undefined) return this.untilEnded();
      if (end.kind !== 'cut') await this.pause();
    }
  }

  private subscribe(viewer: Viewer, lastEventId: number | undefined): Promise<StreamEnd> {
    const request = {
      method: this.dialect.methods.subscribe,
      params: { id: this.record.taskId },
      ...(lastEventId !== undefined && { lastEventId }),
      understood: lastEventId === undefined ? [UNSUPPORTED] : [],
    };
    return this.stream(request, viewer);
  }

  /** Another reader of the same task, at any API. Never rejects. */
  private companion(): Promise<void> {
    const reading = this.readAlong();
    reading.catch(() => undefined);
    return reading;
  }

  private async readAlong(): Promise<void> {
    const { companion } = this.plan;
    if (companion === 'none') return;
    while (!this.record.taskId) await this.pause();
    const from =
      companion === 'from-start' ? { kind: 'log' as const, after: 0 } : { kind: 'snapshot' as const };
    await this.follow(this.viewer('companion', from), 'task');
  }

  private async stream(request: Omit<Request, 'task' | 'agent'>, viewer: Viewer): Promise<StreamEnd> {
    let canceling: Promise<void> | undefined;
    const cutAt = viewer.name === 'companion' ? undefined : this.plan.cuts.pop();
    let seen = 0;
    const end = await this.caller.stream(await this.api(), this.whole(request), (frame) => {
      this.take(viewer, frame);
      seen += 1;
      if (this.plan.kind === 'cancel' && this.isCancelTime(frame)) canceling ??= this.cancel();
      return seen === cutAt || this.around.giveUp.aborted ? 'cut' : 'go-on';
    });
    await canceling;
    if (end.kind === 'cut' && this.around.giveUp.aborted) throw new GaveUp();
    return end;
  }

  private take(viewer: Viewer, frame: Frame): void {
    viewer.frames.push(frame);
    const { said } = frame;
    if (said.kind !== 'other') this.record.taskId ??= said.taskId;
  }

  private isCancelTime({ sequence }: Frame): boolean {
    const { expected } = this.plan;
    const half = expected.agent === 'echo' ? Math.ceil(expected.chunks / 2) : 2;
    return this.record.cancel === undefined && sequence >= half;
  }

  private async cancel(): Promise<void> {
    this.record.cancel = 'asked';
    const { taskId } = this.record;
    for (;;) {
      const outcome = await this.call(this.dialect.methods.cancel, { id: taskId }, [NOT_CANCELABLE]);
      if (outcome.kind === 'result') {
        this.record.cancel = 'done';
        if (outcome.said.kind === 'task') this.record.answeredStates.push(outcome.said.state);
        return;
      }
      // It has ended: by itself, or by a cancel whose answer was lost.
      if (outcome.kind === 'error' && outcome.code === NOT_CANCELABLE) return;
      await this.pause();
    }
  }

  private async untilEnded(): Promise<void> {
    while (!isTerminal((await this.look())?.state)) await this.pause();
  }

  private async untilTurnEnded(): Promise<void> {
    while (!endsTurn((await this.look())?.state)) await this.pause();
  }

  /**
   * Whether a message was taken in whose answer was lost. Half of the callers look into the task's history, if
   * they have the id of the task; the others just send again, for the same message never makes two turns.
   */
  private async isTaken(messageId: string): Promise<boolean> {
    if (this.record.taskId === undefined || this.plan.random.chance(0.5)) return false;
    for (;;) {
      const task = await this.look();
      if (task) return task.history.some((message) => message.messageId === messageId);
      await this.pause();
    }
  }

  /** The task as it is now. */
  private async look() {
    const outcome = await this.call(this.dialect.methods.get, { id: this.record.taskId }, []);
    if (outcome.kind !== 'result' || outcome.said.kind !== 'task') return undefined;
    this.record.answeredStates.push(outcome.said.state);
    return outcome.said;
  }

  private async call(method: string, params: object, understood: number[]): Promise<Outcome> {
    return this.caller.call(await this.api(), this.whole({ method, params, understood }));
  }

  /** Some requests are of callers who do not wait long: they go elsewhere, or send again. */
  private whole(request: Omit<Request, 'task' | 'agent'>): Request {
    const { name, expected, random } = this.plan;
    const impatience = random.chance(0.3) && { patienceMs: random.integer(3000, 8000) };
    return { ...request, task: name, agent: expected.agent, ...impatience };
  }

  private viewer(name: string, from: Viewer['from']): Viewer {
    const viewer: Viewer = { name, from, frames: [] };
    this.record.viewers.push(viewer);
    return viewer;
  }

  private message(turn: number): Outgoing {
    const { expected, delayMs } = this.plan;
    const messageId = this.around.messageId(this.plan, turn);
    this.record.messageIds.push(messageId);
    const { taskId } = this.record;
    const ids = { messageId, ...(turn > 1 && taskId !== undefined && { taskId }) };
    if (expected.agent === 'echo') {
      const { text, chunks } = expected;
      return { ...ids, text, metadata: { echo: { chunks, delayMs } } };
    }
    const { text, lines } = expected.turns[turn - 1]!;
    return { ...ids, text, metadata: { scribe: { turns: expected.turns.length, lines, delayMs } } };
  }

  /** Another API than the last time, if there is one. */
  private async api(): Promise<ApiAddress> {
    const apis = await this.around.apis().catch(() => {
      throw new GaveUp();
    });
    const others = apis.filter(({ pid }) => pid !== this.lastApi);
    const api = this.plan.random.pick(others.length > 0 ? others : apis);
    this.lastApi = api.pid;
    return api;
  }

  /** The end of the task, if an answer or a stream has one. */
  private endTold(): string | undefined {
    const streamed = this.record.viewers.map(lastState).filter((state) => state !== undefined);
    return [...this.record.answeredStates, ...streamed].find(isTerminal);
  }

  private get dialect() {
    return this.caller.dialect;
  }

  private async pause(): Promise<void> {
    if (this.around.giveUp.aborted) throw new GaveUp();
    await delay(this.plan.random.integer(50, 400));
  }
}

const lastState = ({ frames }: Viewer): string | undefined => {
  const last = frames.at(-1);
  return last && stateIn(last.said);
};
