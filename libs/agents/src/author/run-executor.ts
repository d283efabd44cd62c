import { Message, Role, SendMessageRequest, StreamResponse, Task } from '@a2a-js/sdk';
import type { AgentExecutionEvent } from '@a2a-js/sdk/server';
import { randomUUID } from 'node:crypto';
import { requestContext } from '../runtimes/executor/child/hosted-turn.js';
import { TurnBus } from '../runtimes/executor/child/turn-bus.js';
import { LocalState } from './local-state.js';
import type { RecordedStep, StepMessage } from '../runtimes/executor/step-protocol.js';
import { type LocalSteps, type StepAnswers, localSteps } from './local-steps.js';
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
  /** How many executions to run, of an agent that calls `continueAs`. Default: until it ends, and no more than 1,000 */
  executions?: number;
}

/** The result of one turn of an executor. */
export interface ExecutorRun {
  /** Its events in order, as Baton would store them. */
  events: AgentExecutionEvent[];
  /** All texts of its messages, statuses and artifacts, in order. */
  text: string;
  /** What the last execution has given to `continueAs`, if `executions` is set and the agent has not ended. */
  lastState?: unknown;
  /** The values of the state of the context, if there are any. */
  contextState?: Record<string, unknown>;
}

/** Time for one replay: the code may wait for something that no step has. */
const REPLAY_MS = 10_000;

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
 * @throws whatever `execute` throws; Error if it does not end, or if `replay` is set and the code does not fit its own steps; TypeError or RangeError for an event that Baton refuses
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
    ...stepAnswers
  }: RunOptions = {},
): Promise<ExecutorRun> {
  const json: string[] = [];
  const sink = { maxEventBytes: MAX_EVENT_BYTES, event: (text: string) => void json.push(text), finished };
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
  const begin = (steps: LocalSteps, to: typeof sink): { executed: Promise<void>; bus: TurnBus } => {
    const context = requestContext(turn);
    const instance = typeof executor === 'function' ? new executor() : executor;
    const bus = new TurnBus(to, () => context.context.activatedExtensions ?? []);
    Object.assign(context.context, steps.api, { secret });
    return { executed: instance.execute(context as never, bus as never), bus };
  };
  const replayed = async (recorded: readonly RecordedStep[], before: string | undefined): Promise<void> => {
    let onLeft: () => void = finished;
    const left = new Promise<void>((resolve) => (onLeft = resolve));
    const steps = localSteps(stepAnswers, {
      state: new LocalState(values),
      replay: { recorded, onLeft },
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
  /** @returns JSON of the next state; undefined: the agent has ended */
  const execute = async (state: string | undefined): Promise<string | undefined> => {
    const recorder = new StepRecorder();
    let bus: TurnBus | undefined;
    const next = await new Promise<string | undefined>((resolve, reject) => {
      const execution = {
        state: conversation,
        onContinue: resolve,
        onSay: (said: StepMessage) => recorder.note(said),
        ...(state !== undefined && { lastState: state }),
      };
      const steps = localSteps(stepAnswers, execution);
      const undo = async (error: unknown): Promise<never> => {
        throw await steps.compensate(error);
      };
      const begun = begin(steps, sink);
      ({ bus } = begun);
      begun.executed.catch(undo).then(() => resolve(undefined), reject);
    });
    bus?.finished();
    if (replay) for (const recorded of recorder.states) await replayed(recorded, state);
    return next;
  };
  const conversation = new LocalState(values);
  let state = lastState === undefined ? undefined : JSON.stringify(lastState);
  const said = (): ExecutorRun => {
    const events = json.map(eventOf);
    const kept = conversation.values;
    const text = events.map(textOf).join('');
    return { events, text, ...(Object.keys(kept).length > 0 && { contextState: kept }) };
  };
  for (let n = 1; n <= (executions ?? MAX_EXECUTIONS); n++) {
    state = await execute(state);
    if (state === undefined) return said();
  }
  // oxlint-disable-next-line no-restricted-properties -- bounded, and of this agent's code
  if (executions !== undefined) return { ...said(), lastState: state && (JSON.parse(state) as unknown) };
  throw new Error(`the agent has called continueAs() ${MAX_EXECUTIONS} times: set \`executions\``);
}

const finished = (): void => undefined;

const userMessage = (text: string): Message =>
  Message.fromJSON({ messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text }] });

function eventOf(json: string): AgentExecutionEvent {
  // oxlint-disable-next-line no-restricted-properties -- `TurnBus` wrote it
  const { payload } = StreamResponse.fromJSON(JSON.parse(json));
  if (!payload) throw new TypeError('publish() was given an event that says nothing');
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
      const said = history.filter(({ role }) => role === Role.ROLE_AGENT);
      const all = [...artifacts, ...said, ...(status?.message ? [status.message] : [])];
      return all.map(({ parts }) => textOfParts(parts)).join('');
    }
  }
}

const textOfParts = (parts: Message['parts'] = []): string =>
  parts.map(({ content }) => (content?.$case === 'text' ? content.value : '')).join('');
