import { setTimeout as delay } from 'node:timers/promises';
import type { JsonObject } from '@baton/a2a';
import { Suspension } from '../../../../suspension.js';
import type { LlmConfig } from '../../llm-config.js';
import { ApprovalsPending } from '../../approval/approvals-pending.js';
import { newAnswer, type RemoteCall, type RemoteTask, type ToolQuestion } from '../remote-call.js';
import type { AgentTool, ToolCallContext } from '../tool-sources.js';
import { McpFailure } from './mcp-failure.js';
import type { ModernConnection, RemoteTaskState } from './modern-connection.js';
import type { ListedTool } from './tool-list.js';
import { assertInTime, pollTask } from './poll-task.js';
import { answersTo, questionsOf, requestsOf } from './tool-questions.js';

/** How long a call keeps its slot while its server works on a task. Then the run is suspended between two polls. */
const HOLD_MS = 2_000;
/** Pause before a call is sent again because the server requires a repetition without answers. */
const RESEND_MS = 500;
/** Timeout of the request that cancels a task at its server. No caller waits for it. */
const CANCEL_MS = 2_000;
/** Maximum requests of a server for input or a repetition. Without a limit a task may never end. */
const MAX_ROUNDS = 20;

interface RemoteToolCallOptions {
  connection: ModernConnection;
  tool: Pick<ListedTool, 'name' | 'inputSchema'>;
  /** The name of the tool for the model. */
  shownAs: string;
  /** The name of the server in the settings of the agent. */
  server: string;
  url: string;
  repeat: AgentTool['repeat'];
  terms: Pick<LlmConfig['approvals'], 'guests' | 'by'>;
  redact: <T>(value: T) => T;
  /** Another task may continue with the remote task: a cancel of this one leaves it alone. */
  isShared: boolean;
}

/**
 * One tool call at a server of revision 2026-07-28, over all attempts. The server may answer with a task or with questions.
 * The journal stores the state of the call before the next request, so that another attempt can continue.
 */
export class RemoteToolCall {
  private kept: RemoteCall | undefined;

  constructor(
    private readonly options: RemoteToolCallOptions,
    private readonly context: ToolCallContext,
  ) {
    this.kept = context.kept;
  }

  /**
   * Continues the call. Rejects with an McpFailure that the model gets, with a `Suspension` while the server works, and with
   * `ApprovalsPending` if it asks a person.
   * @returns the result as the server wrote it
   */
  async run(input: Record<string, unknown>): Promise<unknown> {
    const { signal } = this.context;
    try {
      return await this.continueCall(input);
    } catch (error) {
      if (signal.aborted && signal.reason === 'canceled') await this.cancel();
      throw error;
    }
  }

  private async continueCall(input: Record<string, unknown>): Promise<unknown> {
    const { kept } = this;
    if (kept?.task) return this.follow(kept.task);
    if (!kept?.asked) return this.send(input);
    const { questions, requestState } = kept.asked;
    const inputResponses = await this.responsesTo(questions, kept);
    return this.send(input, { inputResponses, ...(requestState !== undefined && { requestState }) });
  }

  /** Sends the call, with answers if there are some. */
  private async send(input: Record<string, unknown>, more: JsonObject = {}): Promise<unknown> {
    const { connection, tool, repeat } = this.options;
    const { key, signal, report, keep } = this.context;
    const answer = await connection.send(tool, input, {
      repeat,
      key,
      signal,
      more,
      mayWait: keep !== undefined,
      report,
    });
    if ('result' in answer) return answer.result;
    if ('task' in answer) {
      await this.change({ task: answer.task, asked: undefined });
      return this.follow(answer.task);
    }
    const { inputRequests, requestState } = answer;
    const questions = this.options.redact(questionsOf(inputRequests, this.options.url));
    const asked = { questions, ...(requestState !== undefined && { requestState }) };
    await this.change({ asked, answered: this.context.answer?.number });
    if (Object.keys(questions).length > 0) throw this.questionError(questions);
    // The server asks nothing: it requires the same call again.
    if (this.current.rounds > MAX_ROUNDS) throw tooManyRounds('wanted the call again');
    await delay(RESEND_MS, undefined, { signal });
    return this.send(input, requestState === undefined ? {} : { requestState });
  }

  /** Polls the task until it has ended, or until the pause before the next poll is long enough to give the slot back. */
  private async follow(task: RemoteTask): Promise<unknown> {
    const { connection } = this.options;
    const { signal, report } = this.context;
    const began = Date.now();
    for (;;) {
      const { state, waitMs } = await pollTask(connection, this.current, (kept) => this.store(kept), signal);
      if (!state) throw new Suspension([], waitMs);
      if (state.statusMessage !== undefined) report?.(this.options.redact(state.statusMessage));
      if (state.status === 'completed') return state.result;
      if (state.status === 'input_required' && (await this.answerTask(task, state))) continue;
      assertInTime(task);
      if (Date.now() - began + state.pollIntervalMs > HOLD_MS) throw new Suspension([], waitMs);
      await delay(state.pollIntervalMs, undefined, { signal });
    }
  }

  /** @returns whether something was sent. Throws `ApprovalsPending` if a person must answer first. */
  private async answerTask(task: RemoteTask, { inputRequests }: RemoteTaskState): Promise<boolean> {
    const { answeredKeys = [] } = this.current;
    const open = Object.entries(this.options.redact(questionsOf(inputRequests, this.options.url))).filter(
      ([key]) => !answeredKeys.includes(key),
    );
    if (open.length === 0) return false;
    const inputResponses = await this.responsesTo(Object.fromEntries(open), this.current);
    await this.options.connection.updateTask(task.taskId, inputResponses, this.context.signal);
    await this.change({
      answered: this.context.answer?.number,
      answeredKeys: [...answeredKeys, ...Object.keys(inputResponses)],
    });
    return true;
  }

  /** The answers of a person. Throws `ApprovalsPending` if there are none, or if one is not valid. */
  private async responsesTo(
    questions: Readonly<Record<string, ToolQuestion>>,
    kept: RemoteCall,
  ): Promise<Record<string, JsonObject>> {
    const answer = newAnswer(kept, this.context.answer);
    if (!answer) throw this.questionError(questions);
    const { responses, problems } = await answersTo(questions, answer, this.context.checkForm);
    const hasAll = Object.keys(responses).length === Object.keys(questions).length;
    if (hasAll) return responses;
    await this.change({ answered: answer.number });
    throw this.questionError(questions, problems);
  }

  private questionError(
    questions: Readonly<Record<string, ToolQuestion>>,
    problems?: Readonly<Record<string, string>>,
  ): Error {
    if (this.current.rounds > MAX_ROUNDS) return tooManyRounds('asked a person');
    const { shownAs: tool, server, terms } = this.options;
    return new ApprovalsPending(
      requestsOf(questions, { id: this.context.id, tool, server, terms }, problems),
    );
  }

  private get current(): RemoteCall {
    const { server, url, tool } = this.options;
    return this.kept ?? { server, url, tool: tool.name, rounds: 0 };
  }

  private async change(change: Partial<RemoteCall>): Promise<void> {
    const rounds = this.current.rounds + (change.asked || change.answeredKeys ? 1 : 0);
    await this.store({ ...this.current, ...change, rounds });
  }

  private async store(kept: RemoteCall): Promise<void> {
    this.kept = kept;
    await this.context.keep?.(kept);
  }

  /** Cancels the task at the server. Never rejects. */
  private async cancel(): Promise<void> {
    const { taskId } = this.kept?.task ?? {};
    if (taskId === undefined || this.options.isShared) return;
    await this.options.connection.cancelTask(taskId, AbortSignal.timeout(CANCEL_MS)).catch(() => undefined);
  }
}

const tooManyRounds = (what: string): McpFailure =>
  new McpFailure('error', `it has ${what} more than ${MAX_ROUNDS} times`);
