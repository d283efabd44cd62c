import { Message } from '@a2a-js/sdk';
import type {
  AgentReply,
  DurableSteps,
  HistoryMessage,
  Jsonify,
  StepCall,
  StepOptions,
} from '../runtimes/executor/child/steps.js';
import { HostedSteps } from '../runtimes/executor/child/hosted-steps.js';
import type { StepChannel } from '../runtimes/executor/child/step-link.js';
import { failureOf } from '../runtimes/executor/child/step-failures.js';
import { jsonOf } from '../runtimes/executor/child/step-values.js';
import { UnknownOutcome } from '../runtimes/executor/child/unknown-outcome.js';
import { type CallModel, HostedModel } from '../runtimes/executor/child/hosted-model.js';
import type {
  Compensating,
  RecordedStep,
  StepMessage,
  StepReply,
} from '../runtimes/executor/step-protocol.js';
import type { ModelCallAnswer } from '../runtimes/executor/model-protocol.js';
import { LocalState } from './local-state.js';
import { type ModelScript, scriptedModels } from './scripted-models.js';
import { testKeyOf } from './step-recorder.js';
import { INPUT_TIMEOUT, InputTimeout } from '../runtimes/executor/child/input-timeout.js';

/** Answers of the caller and replies of other agents in a unit test, by the name of the step. */
export interface StepAnswers {
  /** Texts of the caller, for `waitForInput`. */
  answers?: Readonly<Record<string, string>>;
  /** Contents of replies, for `callAgent`. */
  replies?: Readonly<Record<string, unknown>>;
  /**
   * Names of steps whose process dies once, after their function has run. The step then continues by its options: `verify`, or
   * `onUnknown`, for which `answers` has `yes` or `no` by the name of the step.
   */
  crashes?: readonly string[];
  /** Answers of models, in the order of the calls, or a function that makes them. */
  models?: ModelScript;
  /** What the tools of `tools()` do, by their names. */
  tools?: Readonly<Record<string, (input: never) => unknown>>;
  /**
   * Names of tools whose server answers later, with a task, or asks a person first. As in Baton, the code is left when all its steps wait,
   * and runs once more from its beginning when the tool has answered.
   */
  later?: readonly string[];
  /** What `history()` gives. Default: no earlier messages */
  history?: readonly HistoryMessage[];
}

/** The process of the test continues. For the step, the try has no end. */
class ProcessDied extends Error {
  override readonly name = 'ProcessDied';
}

/** Durable steps of a unit test. */
export interface LocalSteps {
  api: DurableSteps;
  /**
   * Compensates what has ended, as Baton does when the code throws or its task was canceled.
   * @returns the error with which the task fails. Undefined: its task was canceled, and all is undone
   */
  compensate(thrown: unknown): Promise<{ error: unknown } | undefined>;
  /** Resolves when an execution that only compensates has called the steps to compensate. */
  collected: Promise<void>;
  /** The task is canceled: steps that wait reject. */
  stop(): void;
  /** How the code differs from the replayed steps, if it does. */
  mismatch(): string | undefined;
  /** How the code, which has ended, differs from the replayed steps, if it does. */
  mismatchAtEnd(): string | undefined;
  /** Whether an earlier attempt has published what the code publishes now. */
  isReplaying(): boolean;
}

/** One of the executions of an agent that begins anew. States are JSON. */
interface LocalExecution {
  state: LocalState;
  lastState?: string;
  onContinue?: (state: string) => void;
  /** All steps wait, for tools that answer later. */
  onSuspend?: () => void;
  /** Answers the model calls. Default: those of the test, from the first one */
  callModel?: ReturnType<typeof scriptedModels>;
  /** Gets the entries that a worker would store. */
  onSay?: (message: StepMessage) => void;
  /** Steps of an execution before. They are not run. */
  recorded?: readonly RecordedStep[];
  /** The execution undoes the steps of a canceled task. */
  compensating?: Compensating;
  /** True: no other step is run. */
  isReplay?: boolean;
  /** The code waits for a step that is not run, or does not fit what is recorded. */
  onLeft?: () => void;
}

/**
 * Durable steps without a server, for unit tests: each step runs once, is tried again at once when it throws, and its result is
 * checked as Baton checks it. Sleeps pass at once. A question with a `timeout` for which the test has no answer times out. Any other question or a call for which the test has no answer rejects.
 */
export function localSteps(
  {
    answers = {},
    replies = {},
    crashes = [],
    models = [],
    history = [],
    tools = {},
    later = [],
  }: StepAnswers,
  execution: LocalExecution = { state: new LocalState({}) },
): LocalSteps {
  const channel: StepChannel = {
    send: (message) => {
      execution.onSay?.(message);
      const { id } = message;
      if (message.op === 'begin' && message.kind === 'tool')
        void useTools(message).then((reply) => steps.link.onReply(id, reply));
      else queueMicrotask(() => steps.link.onReply(id, { until: 0, key: testKeyOf(id) }));
    },
    park: ({ continueAs }) => {
      if (continueAs !== undefined) execution.onContinue?.(continueAs);
      else if (execution.isReplay) execution.onLeft?.();
      else execution.onSuspend?.();
    },
    leave: () => execution.onLeft?.(),
  };
  const { recorded = [], lastState: before, compensating } = execution;
  const steps: HostedSteps = new HostedSteps(recorded, channel, { lastState: before, compensating });
  steps.link.isReplay = execution.isReplay ?? false;
  const { step, sleep, continueAs, lastState, patched } = steps.api;
  const known = (name: string, given: Readonly<Record<string, unknown>>, option: string): unknown => {
    if (Object.hasOwn(given, name)) return given[name];
    throw new Error(`the test has nothing for step "${name}": add it to ${option}`);
  };
  /** As a worker replies. A call that an earlier attempt has begun has its answer. */
  const useTools = async ({ id, request }: BegunToolUse): Promise<StepReply> => {
    try {
      // oxlint-disable-next-line no-restricted-properties -- the library wrote it
      const { call } = JSON.parse(request ?? '{}') as { call?: { tool: string; input: unknown } };
      if (!call) {
        const list = Object.keys(tools).map((name) => ({ name, inputSchema: { type: 'object' } }));
        return { result: JSON.stringify(list) };
      }
      const { tool, input } = call;
      const run = known(tool, tools, 'tools') as (input: unknown) => unknown;
      if (later.includes(tool) && !recorded.some((step) => step.id === id)) return { until: Infinity };
      const result = jsonOf({ ok: true, content: await run(input) }, 'The result of a tool');
      return { ...(result !== undefined && { result }) };
    } catch (error) {
      return { failed: failureOf(error) };
    }
  };
  const crashing = <T>(
    name: string,
    run: (call: StepCall) => T | Promise<T>,
    options: StepOptions<Jsonify<T>> = {},
  ): Promise<Jsonify<T>> => {
    const { attempts = 3, onUnknown, verify, retryIf = () => true } = options;
    let hasDied = false;
    const dying = async (call: StepCall): Promise<T> => {
      if (hasDied) {
        if (!verify && onUnknown === 'fail') throw new UnknownOutcome();
        const isDone = !verify && onUnknown === 'ask' && known(name, answers, 'answers') === 'yes';
        return isDone ? (undefined as never) : run(call);
      }
      hasDied = true;
      await run(call);
      throw new ProcessDied();
    };
    const mayRetry = (error: unknown): boolean =>
      error instanceof ProcessDied || (!(error instanceof UnknownOutcome) && retryIf(error));
    return step(name, dying, { ...options, attempts: Math.min(attempts + 1, 20), retryIf: mayRetry });
  };
  const scripted = execution.callModel ?? scriptedModels(models);
  const callModel: CallModel = async (name, request, onPiece) => {
    const answer: ModelCallAnswer = await step(name, () => scripted(name, request), { attempts: 1 });
    const { content } = answer.message;
    for (const { type, text } of typeof content === 'string' ? [] : content)
      if (type === 'text') onPiece?.({ kind: 'reply', text: String(text) });
    return answer;
  };
  const api: DurableSteps = {
    history: () => step('history', () => [...history]),
    tools: steps.api.tools,
    contextState: execution.state.api(step),
    model: (settings, name) => new HostedModel(settings, name, callModel),
    step: (name, run, options) => (crashes.includes(name) ? crashing : step)(name, run, options),
    sleep,
    patched,
    continueAs,
    lastState,
    waitForInput: async (name, _question, { timeout } = {}) => {
      if (timeout !== undefined && !Object.hasOwn(answers, name)) {
        await step(name, () => undefined);
        const message = 'the test has no answer';
        throw new InputTimeout(name, { name: 'InputTimeout', message, code: INPUT_TIMEOUT });
      }
      const text = await step(name, () => known(name, answers, 'answers'), { attempts: 1 });
      return {
        ...Message.fromJSON({ messageId: name, role: 'ROLE_USER', parts: [{ text }] }),
        request: { metadata: undefined, configuration: undefined },
      };
    },
    callAgent: (name) =>
      step(
        name,
        (): AgentReply => ({ taskId: name, state: 'completed', content: known(name, replies, 'replies') }),
        { attempts: 1 },
      ),
  };
  return {
    api,
    compensate: (thrown) => steps.compensation.compensate(thrown),
    collected: steps.compensation.collected,
    stop: () => steps.link.stop(),
    mismatchAtEnd: () => {
      steps.onEnd();
      return steps.link.mismatch;
    },
    mismatch: () => steps.link.mismatch,
    isReplaying: () => steps.isReplaying,
  };
}

type BegunToolUse = Extract<StepMessage, { op: 'begin' }>;
