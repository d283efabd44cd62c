import { type Message, Role, type TaskState, isInterrupted } from '@baton/a2a';
import { setTimeout as delay } from 'node:timers/promises';
import type { AgentOutput, Turn } from '../../runtime.js';
import { Patience, type TurnStop } from './turn-stop.js';
import { RemoteCalls, type Said } from './remote-calls.js';
import type { RemoteConfig } from './remote-config.js';
import type { RemoteConnection } from './remote-connection.js';
import { type FailureKind, RemoteFailure } from './remote-failure.js';
import type { RemoteMemory } from './remote-memory.js';
import { TaskRelay, statusKey } from './task-relay.js';

/** Before its message was sent a turn waits no longer than this for an agent that can't be reached. */
export const FIRST_PATIENCE_MS = 10_000;
/** After a silence of this long it is asked how the task stands. */
const SILENCE_MS = 60_000;
/** Of one turn, those that say nothing new included. */
const MAX_EVENTS = 200_000;
const VERIFY_TRIES = 3;
const VERIFY_PAUSE_MS = 200;

const NOT_KNOWN_IF_SENT =
  'may have got the message, but it is not known: with repeat: never it is not sent again';

/** One turn of a task whose work is done by a remote agent. */
export class RemoteTurn {
  taskId: string | undefined;
  private contextId: string | undefined;
  private heard = false;
  private events = 0;
  /** The answer is about a task: then messages in it are words in between. */
  private isAboutTask = false;
  /** Whether the journal says that this turn's message has arrived. */
  private noted = false;
  private readonly relay: TaskRelay;
  private readonly calls: RemoteCalls;

  constructor(
    private readonly turn: Turn,
    private readonly config: RemoteConfig,
    private readonly connection: RemoteConnection,
    private readonly memory: RemoteMemory,
    private readonly stop: TurnStop,
  ) {
    this.relay = new TaskRelay(turn, connection.redactor);
    const between = Math.min(SILENCE_MS, config.stall);
    this.calls = new RemoteCalls(connection, stop.signal, { first: config.stall, between });
  }

  /** Whether the remote agent has said its last word. */
  isOver(): boolean {
    return this.relay.over;
  }

  /** What the agent says. Throws RemoteFailure when it can't go on. */
  async *outputs(): AsyncGenerator<AgentOutput> {
    if (await this.mustSend()) yield* this.send();
    if (!this.isOver()) yield* this.follow();
  }

  /** Whether this turn's message is still to be sent: no earlier attempt has, and the task waits for it. */
  private async mustSend(): Promise<boolean> {
    const known = await this.memory.recall();
    const { taskId } = known ?? {};
    if (known?.sameCard === false && taskId !== undefined)
      throw this.failure('is not the one that began the task: the settings have been changed');
    if (known?.ofRun && known.sending) throw this.failure(NOT_KNOWN_IF_SENT);
    this.contextId = known?.sameCard ? known.contextId : await this.memory.contextOfEarlierTasks();
    if (known === undefined || taskId === undefined) return true;
    this.taskId = taskId;
    this.relay.answered = known.answered;
    this.noted = known.ofRun;
    if (known.ofRun) return false;
    const { status } = await this.tried(() => this.calls.get(taskId));
    // It may have gone on without us, as after somebody has signed in elsewhere.
    if (!status || !isInterrupted(status.state)) return false;
    this.relay.answered = statusKey(status);
    return true;
  }

  private async *send(): AsyncGenerator<AgentOutput> {
    const message = await this.message();
    if (this.config.repeat === 'never') await this.memory.note({ ...this.ids(), sending: true });
    const patience = new Patience(Math.min(FIRST_PATIENCE_MS, this.config.reconnect), this.stop.signal);
    for (;;) {
      try {
        yield* this.hear(this.calls.send(message));
        if (this.heard) return;
        throw this.failure('ended its answer without a word', 'broken');
      } catch (error) {
        if (!(error instanceof RemoteFailure) || !error.passes) throw error;
        if (this.heard) return;
        if (error.kind === 'broken' && this.config.repeat === 'never')
          throw new RemoteFailure('final', `${error.message}. It ${NOT_KNOWN_IF_SENT}`, { cause: error });
        if (patience.isOver) throw error;
        await patience.wait();
      }
    }
  }

  /** From how the task stands now to its end, over as many connections as it takes. */
  private async *follow(): AsyncGenerator<AgentOutput> {
    const { taskId } = this;
    if (taskId === undefined) throw this.failure('ended its answer before it was complete');
    let subscribes = this.connection.streams;
    const patience = new Patience(this.config.reconnect, this.stop.signal);
    const news = new Patience(this.config.stall, this.stop.signal);
    while (!this.isOver()) {
      try {
        yield* this.absorb({ $case: 'task', value: await this.calls.get(taskId) }, news);
        patience.beginAnew();
        if (subscribes && !this.isOver()) yield* this.hear(this.calls.subscribe(taskId), news);
        patience.renew();
        if (!this.isOver()) await this.pause(news);
      } catch (error) {
        if (subscribes && isUnsupported(error)) subscribes = false;
        else await this.waitAfter(error, patience);
      }
    }
  }

  private async pause(news: Patience): Promise<void> {
    if (news.isOver) throw this.failure('has given no news of the task for too long (stall)');
    await news.wait();
  }

  /** Until a call that failed may be made again; throws if it may not. */
  private async waitAfter(error: unknown, patience: Patience): Promise<void> {
    if (!(error instanceof RemoteFailure)) throw error;
    if (error.kind === 'gone')
      throw this.failure('no longer knows the task: it may have lost it in a restart');
    if (!error.passes || patience.isOver) throw error;
    await patience.wait();
  }

  private async tried<T>(call: () => Promise<T>): Promise<T> {
    const patience = new Patience(Math.min(FIRST_PATIENCE_MS, this.config.reconnect), this.stop.signal);
    for (;;) {
      try {
        return await call();
      } catch (error) {
        await this.waitAfter(error, patience);
      }
    }
  }

  /** Everything of a stream, up to the end of the turn. */
  private async *hear(stream: AsyncGenerator<Said>, news?: Patience): AsyncGenerator<AgentOutput> {
    for await (const said of stream) {
      // Between two connections a stream may have had more or less than it should.
      const isEnd = said.$case === 'statusUpdate' && this.relay.ends(said.value.status);
      if (news && isEnd) yield* this.verify(said.value.status?.state);
      yield* this.absorb(said, news);
      if (this.isOver()) return;
    }
  }

  private async *absorb(said: Said, news?: Patience): AsyncGenerator<AgentOutput> {
    this.heard = true;
    this.events += 1;
    if (this.events > MAX_EVENTS) {
      throw this.failure(`sent more than ${MAX_EVENTS} events in one turn`, 'final', 'agentEvents');
    }
    await this.learn(said);
    this.isAboutTask ||= said.$case !== 'message';
    const outputs = this.relay.relay(said, !this.isAboutTask);
    if (outputs.length > 0) news?.renew();
    yield* outputs;
  }

  /** Make the artifacts agree with those that the ended task has. */
  private async *verify(state: TaskState | undefined): AsyncGenerator<AgentOutput> {
    for (let i = 0; i < VERIFY_TRIES; i++) {
      const task = await this.calls.get(this.taskId ?? '').catch(() => undefined);
      if (task?.status?.state === state && task) {
        yield* this.relay.relay({ $case: 'task', value: { ...task, status: undefined } }, false);
        return;
      }
      await delay(VERIFY_PAUSE_MS, undefined, { signal: this.stop.signal });
    }
  }

  /** Remember the remote ids, before anything of them is passed on: another attempt goes on from there. */
  private async learn({ $case, value }: Said): Promise<void> {
    const taskId = $case === 'task' ? value.id : $case === 'message' ? '' : value.taskId;
    const isNews = (known: string | undefined, said: string): boolean => said !== '' && said !== known;
    if (this.noted && !isNews(this.taskId, taskId) && !isNews(this.contextId, value.contextId)) return;
    this.taskId = taskId || this.taskId;
    this.contextId = value.contextId || this.contextId;
    this.noted = true;
    if (this.taskId !== undefined) this.stop.canTell();
    if (!this.stop.isAsked) await this.memory.note(this.ids());
  }

  private ids() {
    const { taskId, contextId } = this;
    const { answered } = this.relay;
    return { ...(taskId && { taskId }), ...(contextId && { contextId }), ...(answered && { answered }) };
  }

  private async message(): Promise<Message> {
    const { runId, message } = this.turn;
    const { forward } = this.config;
    return {
      // The same in every attempt: an agent that knows it joins what it has begun.
      messageId: runId,
      taskId: this.taskId ?? '',
      contextId: this.contextId ?? '',
      role: Role.ROLE_USER,
      parts: message.parts,
      metadata: forward.metadata ? message.metadata : undefined,
      extensions: message.extensions.filter((uri) => this.connection.extensions.includes(uri)),
      referenceTaskIds: await this.memory.referenceTaskIds(),
    };
  }

  private failure(what: string, kind: FailureKind = 'final', limit?: string): RemoteFailure {
    return new RemoteFailure(kind, `The agent at ${this.connection.host} ${what}`, { limit });
  }
}

const isUnsupported = (error: unknown): boolean =>
  error instanceof RemoteFailure && error.kind === 'unsupported';
