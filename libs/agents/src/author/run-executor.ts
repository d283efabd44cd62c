import { Message, Role, SendMessageRequest, StreamResponse, Task } from '@a2a-js/sdk';
import type { AgentExecutionEvent } from '@a2a-js/sdk/server';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { requestContext } from '../runtimes/executor/child/hosted-turn.js';
import { TurnBus } from '../runtimes/executor/child/turn-bus.js';
import { LocalState } from './local-state.js';
import type { RecordedStep } from '../runtimes/executor/step-protocol.js';
import { type LocalSteps, type StepAnswers, localSteps } from './local-steps.js';
import { scriptedModels } from './scripted-models.js';
import { StepRecorder } from './step-recorder.js';

/** An `AgentExecutor` of any copy of `@a2a-js/sdk`. */
interface Executor {
  execute(context: never, bus: never): Promise<void>;
  cancelTask(taskId: string, bus: never): Promise<void>;
}

/** With `answers` and `replies` for the durable steps that wait for others. */
export interface RunOptions extends StepAnswers {
  /** The tenant's secrets by name, for `secret()`. */
  secrets?: Readonly<Record<string, string>>;
  /** Values of the state of the context by key. Default: none */
  contextState?: Readonly<Record<string, unknown>>;
  /** The stored task, for a second turn: the executor finds it in its context. Default: the task is new. */
  task?: Task;
  /** `metadata` and `configuration` of the request, beside its message. */
  request?: Partial<Pick<SendMessageRequest, 'metadata' | 'configuration'>>;
  /** URIs of the extensions that the caller asks for. */
  extensions?: string[];
  /** What the execution before has given to `continueAs`. Default: it is the first one */
  lastState?: unknown;
  /**
   * True: the code is run once more for each step that has ended, from its beginning, with the results so far: as after a crash there.
   * No function of a step runs. What the code does outside of steps is done again, and what it publishes is dropped. Default: false
   */
  replay?: boolean;
  /**
   * Steps of an earlier run, one of its `journals`: the code finds their results and continues after them. The run rejects if the code does
   * not fit them. Keep a journal in a file to try changed code against it. Default: the task has no steps yet
   */
  journal?: StepJournal;
  /**
   * Name of a step: the task is canceled when the step begins. When the executor has stopped, what can be undone is undone, as another task
   * does it in Baton: `undone` of the result lists the steps. Default: it is not canceled
   */
  cancelAt?: string;
  /** How many executions to run, of an agent that calls `continueAs`. Default: until it ends, and no more than 1,000 */
  executions?: number;
}

/** The stored state of a task when one of its steps has ended. JSON: its contents are Baton's own. */
export interface StepJournal {
  readonly steps: readonly unknown[];
  /** JSON of the state that the last execution has passed to `continueAs`. */
  readonly lastState?: string;
}

/** The result of one turn of an executor. */
export interface ExecutorRun {
  /** Its events in order, as Baton would store them. */
  events: AgentExecutionEvent[];
  /** All texts of its messages, statuses and artifacts, in order. */
  text: string;
  /** What Baton would have stored after each step that has ended, for `journal` of another run. */
  journals: StepJournal[];
  /** With `cancelAt`: the task that undoes the steps of the canceled one. Unset: there was nothing to undo */
  undone?: UndoneSteps;
  /** What the last execution has given to `continueAs`, if `executions` is set and the agent has not ended. */
  lastState?: unknown;
  /** The values of the state of the context, if there are any. */
  contextState?: Record<string, unknown>;
}

/** What the task has done that undoes the steps of a canceled one. */
export interface UndoneSteps {
  /** Names of the steps that it has undone or tried to, in that order. */
  steps: string[];
  /** Names of the steps that were under way at the cancel, and whose outcome `verify` has not found out. */
  unknown: string[];
  /** It fails with this error, because a compensation has failed. Unset: it is completed */
  error?: unknown;
}

/** Time for one replay, and to come to the steps that are to be undone: the code may wait for something that no step has. */
const REPLAY_MS = 10_000;

/** Time that an executor has to stop after `cancelTask`, as in a worker. */
const STOP_MS = 2_000;

/** More are an agent that does not end. */
const MAX_EXECUTIONS = 1_000;

/** As large as Baton allows by default. */
const MAX_EVENT_BYTES = 4 * 1024 * 1024;

/**
 * Runs one turn of an executor without a server, for unit tests. The executor gets the context that Baton would give it,
 * and each event is checked as Baton checks it.
 *
 * @param executor the executor, or its class
 * @param message the user's text, or a whole message
 * @returns the events that it published until `execute` returned, in all executions
 * @throws whatever `execute` throws, unless it was canceled; Error if it does not end or does not stop, or if the code does not fit the steps of
 * `journal`, or with `replay` its own; TypeError or RangeError for an event that Baton refuses
 */
export async function runExecutor(
  executor: Executor | (new () => Executor),
  message: string | Message,
  {
    task,
    request = {},
    extensions = [],
    secrets = {},
    contextState: values = {},
    lastState,
    executions,
    replay = false,
    journal,
    cancelAt,
    ...stepAnswers
  }: RunOptions = {},
): Promise<ExecutorRun> {
  const json: string[] = [];
  const event = (text: string): void => void json.push(text);
  const sink = { maxEventBytes: MAX_EVENT_BYTES, event, finished };
  const taskId = task?.id ?? randomUUID();
  const contextId = task?.contextId ?? randomUUID();
  const sent = typeof message === 'string' ? userMessage(message) : message;
  const turn = {
    tenantId: 'test',
    taskId,
    contextId,
    extensions,
    message: Message.toJSON({ ...sent, taskId, contextId }),
    details: SendMessageRequest.toJSON({
      tenant: '',
      message: undefined,
      metadata: request.metadata,
      configuration: request.configuration,
    }),
    ...(task && { task: Task.toJSON(task) }),
  };
  const secret = (name: string): Promise<string> => {
    const value = Object.hasOwn(secrets, name) ? secrets[name] : undefined;
    if (value !== undefined) return Promise.resolve(value);
    return Promise.reject(new Error(`the test has no secret "${name}": add it to secrets`));
  };
  const begin = (steps: LocalSteps, to: typeof sink, hosted = turn): BegunTurn => {
    const context = requestContext(hosted);
    const instance = typeof executor === 'function' ? new executor() : executor;
    const bus = new TurnBus(to, () => context.context.activatedExtensions ?? []);
    Object.assign(context.context, steps.api, { secret });
    const cancel = (): Promise<void> => {
      steps.stop();
      return instance.cancelTask(taskId, bus as never);
    };
    return { executed: instance.execute(context as never, bus as never), bus, cancel };
  };
  const replayed = async (recorded: readonly RecordedStep[], before: string | undefined): Promise<void> => {
    let onLeft: () => void = finished;
    const left = new Promise<void>((resolve) => (onLeft = resolve));
    const steps = localSteps(stepAnswers, {
      state: new LocalState(values),
      recorded,
      isReplay: true,
      onLeft,
      ...(before !== undefined && { lastState: before }),
    });
    const { executed } = begin(steps, { ...sink, event: () => undefined });
    const ended = executed.then(() => steps.mismatchAtEnd());
    const time = AbortSignal.timeout(REPLAY_MS);
    const late = new Promise<string>((resolve) => {
      time.addEventListener('abort', () => resolve(`The code waits for something that is no step`));
    });
    const problem = await Promise.race([
      ended.catch(() => steps.mismatch()),
      left.then(() => steps.mismatch()),
      late,
    ]);
    if (problem === undefined) return;
    const names = recorded.flatMap(({ name, ended: end }) => (end ? [name] : []));
    throw new Error(`replay after the steps ${names.join(', ')}: ${problem}`);
  };
  /** As the sweep of canceled tasks does it: the code is called once more, in a task of its own. Its output is dropped. */
  const undo = async (
    recorder: StepRecorder,
    before: string | undefined,
  ): Promise<UndoneSteps | undefined> => {
    const found = recorder.toUndo();
    if (!found) return undefined;
    let listed = found.compensating;
    let onLeft: () => void = finished;
    const left = new Promise<void>((resolve) => (onLeft = resolve));
    const steps = localSteps(stepAnswers, {
      ...found,
      state: conversation,
      onLeft,
      // It has the results of `verify` for the steps under way.
      onSay: (message) => {
        if (message.op === 'compensate') listed = message;
      },
      ...(before !== undefined && { lastState: before }),
    });
    const id = randomUUID();
    const { executed } = begin(
      steps,
      { ...sink, event: () => undefined },
      {
        ...turn,
        taskId: id,
        message: Message.toJSON({ ...sent, taskId: id, contextId }),
        ...(task && { task: Task.toJSON({ ...task, id }) }),
      },
    );
    const ended = executed.then(finished, finished);
    await Promise.race([ended, left, steps.collected, delay(REPLAY_MS, undefined, { ref: false })]);
    const failure = await steps.compensate(undefined);
    const problem = steps.mismatch();
    if (problem !== undefined) throw new Error(`the code cannot be run again to undo its steps: ${problem}`);
    const namesOf = (ids: readonly number[] = []): string[] =>
      ids.flatMap((one) => found.recorded.find((step) => step.id === one)?.name ?? []);
    return { steps: namesOf(listed.steps), unknown: namesOf(listed.unknown), ...failure };
  };
  /** @returns JSON of the next state; undefined: the agent has ended */
  const execute = async (state: string | undefined): Promise<string | undefined> => {
    const before = journal && !hasBegun ? (journal.steps as RecordedStep[]) : [];
    hasBegun = true;
    const recorder = new StepRecorder(before);
    const callModel = scriptedModels(stepAnswers.models ?? []);
    let begun: BegunTurn | undefined;
    /** @returns SUSPENDED: the next attempt continues */
    const attempt = (recorded: readonly RecordedStep[], isFirst: boolean) =>
      new Promise<string | undefined | typeof SUSPENDED>((resolve, reject) => {
        const cancel = (): void => {
          isCanceled = true;
          recorder.close();
          setTimeout(
            () => reject(new Error(`the executor did not stop ${STOP_MS / 1000} s after the cancel`)),
            STOP_MS,
          ).unref();
          // As in Baton: not inside of the code's own call.
          setImmediate(() => void begun?.cancel().catch(reject));
        };
        const misfit = (problem: string | undefined): void => {
          if (problem !== undefined) reject(new Error(`the code does not fit the journal: ${problem}`));
        };
        const steps: LocalSteps = localSteps(stepAnswers, {
          state: conversation,
          recorded,
          callModel,
          onContinue: resolve,
          onSuspend: () => !isCanceled && resolve(SUSPENDED),
          onLeft: () => misfit(steps.mismatch()),
          onSay: (message) => {
            recorder.note(message);
            if (message.op === 'begin' && message.name === cancelAt) cancel();
          },
          ...(state !== undefined && { lastState: state }),
        });
        const compensate = async (error: unknown): Promise<void> => {
          const failure = isCanceled ? undefined : await steps.compensate(error);
          // The cancel may have come meanwhile.
          if (!isCanceled) throw failure?.error;
        };
        const event = (text: string): void => {
          if (isFirst || !steps.isReplaying()) sink.event(text);
        };
        begun = begin(steps, { ...sink, event });
        begun.executed
          .then(() => misfit(steps.mismatchAtEnd()))
          .catch(compensate)
          .then(() => resolve(undefined), reject);
      });
    let next = await attempt(before, true);
    while (next === SUSPENDED) next = await attempt(recorder.recorded, false);
    begun?.bus.finished();
    for (const steps of recorder.states)
      journals.push({ steps, ...(state !== undefined && { lastState: state }) });
    if (replay) for (const recorded of recorder.states) await replayed(recorded, state);
    if (isCanceled) undone = await undo(recorder, state);
    return isCanceled ? undefined : next;
  };
  const conversation = new LocalState(values);
  const journals: StepJournal[] = [];
  let hasBegun = false;
  let isCanceled = false;
  let undone: UndoneSteps | undefined;
  let state = lastState === undefined ? journal?.lastState : JSON.stringify(lastState);
  const result = (): ExecutorRun => {
    const events = json.map(eventOf);
    const kept = conversation.values;
    const text = events.map(textOf).join('');
    return {
      events,
      text,
      journals,
      ...(undone && { undone }),
      ...(Object.keys(kept).length > 0 && { contextState: kept }),
    };
  };
  for (let n = 1; n <= (executions ?? MAX_EXECUTIONS); n++) {
    state = await execute(state);
    if (state === undefined) return result();
  }
  // oxlint-disable-next-line no-restricted-properties -- bounded, and of this agent's code
  if (executions !== undefined) return { ...result(), lastState: state && (JSON.parse(state) as unknown) };
  throw new Error(`the agent has called continueAs() ${MAX_EXECUTIONS} times: set \`executions\``);
}

/** All steps wait for tools that answer later. */
const SUSPENDED = Symbol('suspended');

/** One call of `execute`. */
interface BegunTurn {
  executed: Promise<void>;
  bus: TurnBus;
  /** Rejects with what `cancelTask` throws. */
  cancel: () => Promise<void>;
}

const finished = (): void => undefined;

const userMessage = (text: string): Message =>
  Message.fromJSON({ messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }] });

function eventOf(json: string): AgentExecutionEvent {
  // oxlint-disable-next-line no-restricted-properties -- `TurnBus` wrote it
  const { payload } = StreamResponse.fromJSON(JSON.parse(json));
  if (!payload) throw new TypeError('publish() got an event without content');
  return { kind: payload.$case, data: payload.value } as AgentExecutionEvent;
}

function textOf({ kind, data }: AgentExecutionEvent): string {
  switch (kind) {
    case 'message':
      return textOfParts(data.parts);
    case 'statusUpdate':
      return textOfParts(data.status?.message?.parts);
    case 'artifactUpdate':
      return textOfParts(data.artifact?.parts);
    case 'task': {
      const { status, artifacts, history } = data;
      const answers = history.filter(({ role }) => role === Role.ROLE_AGENT);
      const all = [...artifacts, ...answers, ...(status?.message ? [status.message] : [])];
      return all.map(({ parts }) => textOfParts(parts)).join('');
    }
  }
}

const textOfParts = (parts: Message['parts'] = []): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
