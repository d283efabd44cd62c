import {
  type Message,
  type RequestDetails,
  Role,
  type TaskState,
  isInterrupted,
  withoutReserved,
} from '@baton/a2a';
import { setTimeout as delay } from 'node:timers/promises';
import type { AgentOutput, Turn } from '../../agent-runtime.js';
import { runOfEffects } from '../../task-origin.js';
import { SENT_BY_AGENT } from '../../approvals.js';
import { RemoteCalls, type Said } from './remote-calls.js';
import { RemoteBackoff } from './remote-backoff.js';
import type { RemoteConfig } from './remote-config.js';
import type { RemoteConnection } from './remote-connector.js';
import { type FailureKind, RemoteFailure } from './remote-failure.js';
import type { RemoteMemory } from './remote-memory.js';
import { EventTranslator, statusKey } from './event-translator.js';
import { TurnStop } from './turn-stop.js';

/** Maximum time to retry an unreachable agent before the turn's message was sent. */
export const FIRST_TIMEOUT_MS = 10_000;
/** After this time without events the task is read again. */
const SILENCE_MS = 60_000;
/** Maximum events of a turn, including events that change nothing. */
const MAX_EVENTS = 200_000;
/** Maximum length of an id of the remote agent. Baton itself accepts no longer one. */
const MAX_ID_LENGTH = 1024;
/** Changes of the ids that an attempt keeps. All entries of a journal are read at once, and an agent may change them with each event. */
const MAX_NOTES = 100;
/** Times that a task is read again after an answer that is not A2A. A proxy may give one for a moment. */
const MAX_ODD_READS = 3;
/** Reads of the remote task to complete its artifacts: the agent may store the state a moment after it has sent it. */
const VERIFY_TRIES = 3;
/** Pause between two reads: the moment until the state is stored. */
const VERIFY_PAUSE_MS = 200;

const NOT_KNOWN_IF_SENT =
  'may have got the message, but it is not known: with repeat: never it is not sent again';

/** One turn that a remote agent runs: sends the message, then follows the remote task to its end. */
export class RemoteTurn {
  taskId: string | undefined;
  /** The remote agent may have this turn's message. */
  mayHaveArrived = false;
  private contextId: string | undefined;
  private hasEvents = false;
  private events = 0;
  /** The answer is about a task. Messages in it are progress then, and not the reply. */
  private isAboutTask = false;
  /** Whether the journal has an entry that the message of this turn arrived. */
  private noted = false;
  /** Entries that this attempt has written. */
  private notes = 0;
  private readonly translator: EventTranslator;
  private readonly calls: RemoteCalls;

  constructor(
    private readonly turn: Turn,
    private readonly config: RemoteConfig,
    private readonly connection: RemoteConnection,
    private readonly memory: RemoteMemory,
    private readonly stop: TurnStop,
  ) {
    this.translator = new EventTranslator(turn, connection.redactor);
    const between = Math.min(SILENCE_MS, config.stall);
    this.calls = new RemoteCalls(connection, stop.signal, { first: config.stall, between });
  }

  /** Whether the remote agent has ended the turn. */
  isOver(): boolean {
    return this.translator.isOver;
  }

  /** Yields the agent's output. Throws RemoteFailure if the turn cannot continue. */
  async *outputs(): AsyncGenerator<AgentOutput> {
    if (await this.mustSend()) yield* this.send();
    if (!this.isOver()) yield* this.follow();
  }

  /** Whether to send this turn's message: no earlier attempt has sent it, and the remote task waits for it. */
  private async mustSend(): Promise<boolean> {
    const known = await this.memory.recall();
    const { taskId } = known ?? {};
    if (known?.sameCard === false && taskId !== undefined)
      throw this.failure('is not the one that began the task: the settings have been changed');
    if (known?.ofRun && known.sending) throw this.failure(NOT_KNOWN_IF_SENT);
    const isBegun = known?.sameCard && (known.taskId !== undefined || known.contextId !== undefined);
    this.contextId = isBegun ? known.contextId : await this.memory.contextOfEarlierTasks();
    this.mayHaveArrived = known?.ofRun === true;
    if (known === undefined || taskId === undefined) return true;
    this.taskId = taskId;
    this.translator.answeredStatus = known.answered;
    this.noted = known.ofRun;
    if (known.ofRun) return false;
    const { status } = await this.retry(() => this.calls.get(taskId));
    // The remote task may have continued by itself, for example after a login elsewhere.
    if (!status || !isInterrupted(status.state)) return false;
    this.translator.answeredStatus = statusKey(status);
    return true;
  }

  private async *send(): AsyncGenerator<AgentOutput> {
    const message = await this.message();
    await this.connection.note();
    if (this.config.repeat === 'never') await this.memory.note({ ...this.ids(), sending: true });
    const backoff = new RemoteBackoff(Math.min(FIRST_TIMEOUT_MS, this.config.reconnect), this.stop.signal);
    // Some cards declare streams that the agent does not support. Its refusal shows that it has not accepted the message.
    let { streams } = this.connection;
    for (;;) {
      try {
        yield* this.readStream(this.calls.send(message, this.details(), streams));
        if (this.hasEvents) return;
        throw this.failure('ended its answer without a word', 'odd');
      } catch (error) {
        if (!(error instanceof RemoteFailure)) throw error;
        this.mayHaveArrived ||= error.kind !== 'unreached' && !error.signIn;
        // The task is followed, whatever the end of the stream was.
        if (this.hasEvents && error.mayPass) return;
        if (streams && !this.hasEvents && error.kind === 'unsupported') {
          streams = false;
          continue;
        }
        if (error.mayPass && !error.isUnanswered) throw sentOnce(error);
        if (!error.isUnanswered) throw error;
        if (error.kind === 'broken' && this.config.repeat === 'never')
          throw new RemoteFailure('final', `${error.message}. It ${NOT_KNOWN_IF_SENT}`, { cause: error });
        if (backoff.isExpired) throw error;
        await backoff.wait();
      }
    }
  }

  /** Follows the remote task to its end, and reconnects as often as needed. */
  private async *follow(): AsyncGenerator<AgentOutput> {
    const { taskId } = this;
    if (taskId === undefined) throw this.failure('ended its answer before it was complete');
    let subscribes = this.connection.streams;
    const backoff = new RemoteBackoff(this.config.reconnect, this.stop.signal);
    const stall = new RemoteBackoff(this.config.stall, this.stop.signal);
    while (!this.isOver()) {
      let isSubscribing = false;
      try {
        yield* this.translateEvent({ $case: 'task', value: await this.calls.get(taskId) }, stall);
        backoff.restartTimeout();
        isSubscribing = subscribes && !this.isOver();
        if (isSubscribing) yield* this.readStream(this.calls.subscribe(taskId), stall);
        backoff.reset();
        if (!this.isOver()) await this.pause(stall);
      } catch (error) {
        // A task that cannot be subscribed to is read from time to time.
        if (isSubscribing && (isOfKind(error, 'unsupported') || isOfKind(error, 'odd'))) subscribes = false;
        else await this.waitAfter(error, backoff);
      }
    }
  }

  private async pause(stall: RemoteBackoff): Promise<void> {
    if (stall.isExpired) throw this.failure('has given no news of the task for too long (stall)');
    await stall.wait();
  }

  /** Waits before the next try of a failed call. Throws if there must be none. */
  private async waitAfter(error: unknown, backoff: RemoteBackoff): Promise<void> {
    if (!(error instanceof RemoteFailure)) throw error;
    if (error.kind === 'gone')
      throw this.failure('no longer knows the task: it may have lost it in a restart');
    if (!error.mayPass || backoff.isExpired) throw error;
    if (error.kind === 'odd' && backoff.waits >= MAX_ODD_READS) throw error;
    await backoff.wait();
  }

  private async retry<T>(call: () => Promise<T>): Promise<T> {
    const backoff = new RemoteBackoff(Math.min(FIRST_TIMEOUT_MS, this.config.reconnect), this.stop.signal);
    for (;;) {
      try {
        return await call();
      } catch (error) {
        await this.waitAfter(error, backoff);
      }
    }
  }

  /** Relays a stream up to the end of the turn. */
  private async *readStream(
    stream: AsyncGenerator<Said>,
    stall?: RemoteBackoff,
  ): AsyncGenerator<AgentOutput> {
    for await (const event of stream) {
      // A stream may have lost or doubled events between two connections.
      const isEnd = event.$case === 'statusUpdate' && this.translator.ends(event.value.status);
      if (stall && isEnd) yield* this.verify(event.value.status?.state);
      yield* this.translateEvent(event, stall);
      if (this.isOver()) return;
    }
  }

  private async *translateEvent(event: Said, stall: RemoteBackoff | undefined): AsyncGenerator<AgentOutput> {
    this.hasEvents = true;
    this.mayHaveArrived = true;
    this.events += 1;
    if (this.events > MAX_EVENTS) {
      throw this.failure(`sent more than ${MAX_EVENTS} events in one turn`, 'final', 'agentEvents');
    }
    if (this.isOfAnotherTask(event)) return;
    await this.noteIds(event);
    this.isAboutTask ||= event.$case !== 'message';
    const outputs = this.translator.translate(event, !this.isAboutTask);
    if (outputs.length > 0) stall?.reset();
    yield* outputs;
  }

  /** A server that mixes up its streams must not write data of another caller into this task. */
  private isOfAnotherTask({ $case, value }: Said): boolean {
    if ($case !== 'statusUpdate' && $case !== 'artifactUpdate') return false;
    return this.noted && this.taskId !== undefined && value.taskId !== '' && value.taskId !== this.taskId;
  }

  /** Completes the artifacts from the stored remote task, once that has the state `state`. */
  private async *verify(state: TaskState | undefined): AsyncGenerator<AgentOutput> {
    for (let i = 0; i < VERIFY_TRIES; i++) {
      const task = await this.calls.get(this.taskId ?? '').catch(() => undefined);
      if (task?.status?.state === state && task) {
        yield* this.translator.translate({ $case: 'task', value: { ...task, status: undefined } }, false);
        return;
      }
      await delay(VERIFY_PAUSE_MS, undefined, { signal: this.stop.signal });
    }
  }

  /** Stores the remote ids before the event is relayed, so the next attempt can continue with them. */
  private async noteIds({ $case, value }: Said): Promise<void> {
    const taskId = $case === 'task' ? value.id : $case === 'message' ? '' : value.taskId;
    const isNews = (known: string | undefined, next: string): boolean => next !== '' && next !== known;
    if (this.noted && !isNews(this.taskId, taskId) && !isNews(this.contextId, value.contextId)) return;
    if (Math.max(taskId.length, value.contextId.length) > MAX_ID_LENGTH)
      throw this.failure(`gave an id of more than ${MAX_ID_LENGTH} characters`);
    this.taskId = taskId || this.taskId;
    this.contextId = value.contextId || this.contextId;
    this.noted = true;
    if (this.taskId !== undefined) this.stop.allowAbort();
    if (this.stop.isRequested || this.notes >= MAX_NOTES) return;
    this.notes += 1;
    await this.memory.note(this.ids());
  }

  private ids() {
    const { taskId, contextId } = this;
    const { answeredStatus: answered } = this.translator;
    return { ...(taskId && { taskId }), ...(contextId && { contextId }), ...(answered && { answered }) };
  }

  private async message(): Promise<Message> {
    const { message } = this.turn;
    const { forward } = this.config;
    const unsent = await this.memory.unsentMessages();
    return {
      // Every attempt uses the same id, so the agent can recognize a message that it already has.
      messageId: runOfEffects(this.turn),
      taskId: this.taskId ?? '',
      contextId: this.contextId ?? '',
      role: Role.ROLE_USER,
      parts: [...unsent.flatMap(({ parts }) => parts), ...message.parts],
      metadata: forward.metadata ? withoutReserved(message.metadata, Object.keys(SENT_BY_AGENT)) : undefined,
      extensions: message.extensions.filter((uri) => this.connection.extensions.includes(uri)),
      referenceTaskIds: await this.memory.referenceTaskIds(),
    };
  }

  private details(): RequestDetails {
    const { metadata, configuration } = this.turn.details;
    return { metadata: this.config.forward.metadata ? withoutReserved(metadata) : undefined, configuration };
  }

  private failure(what: string, kind: FailureKind = 'final', limit?: string): RemoteFailure {
    return new RemoteFailure(kind, `The agent at ${this.connection.host} ${what}`, { limit });
  }
}

/** The failure of a message that had an answer. */
const sentOnce = (error: RemoteFailure): RemoteFailure =>
  new RemoteFailure(
    'final',
    `${error.message}. The message is not sent again, because the agent may have taken it`,
    { cause: error.cause },
  );

const isOfKind = (error: unknown, kind: FailureKind): boolean =>
  error instanceof RemoteFailure && error.kind === kind;
