import type http from 'node:http';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';
import { exchange } from './exchange.js';
import { judge } from './judge.js';

const LOOK_MS = 100;

/** The names of one version of the protocol for what a caller does with a task. */
const VERSIONS = {
  '1.0': { send: 'SendMessage', get: 'GetTask', cancel: 'CancelTask' },
  '0.3': { send: 'message/send', get: 'tasks/get', cancel: 'tasks/cancel' },
} as const;
export type Version = keyof typeof VERSIONS;

interface Seen {
  id: string;
  state: string;
  /** Whether its status has a message. */
  hasMessage: boolean;
}

/** What came of a message: how its task ended, or what must not be. */
export type Ending = { state: string; problem?: undefined } | { state?: undefined; problem: string };

/** A caller that judges every answer, and expects every task to end. */
export class TaskCaller {
  constructor(
    private readonly base: string,
    private readonly token: string,
    private readonly http: http.Agent,
  ) {}

  /**
   * Send a message and look at its task until its turn is over.
   * @param endMs when it must be over. With `cancel` it is canceled then, and must be over because of that
   */
  async settle(slug: string, version: Version, endMs: number, cancel = false): Promise<Ending> {
    const { send, get, cancel: stop } = VERSIONS[version];
    let seen = await this.call(slug, version, send, sendParams(version));
    if (typeof seen === 'string') return refusedOr(seen);
    const { id } = seen;
    const wait = async (until: number): Promise<string | undefined> => {
      while (typeof seen !== 'string' && isOngoing(seen.state) && performance.now() < until) {
        await delay(LOOK_MS);
        seen = await this.call(slug, version, get, { id });
      }
      return typeof seen === 'string' ? seen : undefined;
    };
    const problem = await wait(performance.now() + endMs);
    if (problem !== undefined) return { problem };
    if (isOngoing(seen.state) && cancel) {
      const answer = await this.call(slug, version, stop, { id });
      const failed = typeof answer === 'string' ? answer : await wait(performance.now() + endMs);
      if (failed !== undefined && !failed.startsWith('refused: ')) return { problem: failed };
      seen = await this.call(slug, version, get, { id });
      if (typeof seen === 'string') return { problem: seen };
    }
    if (isOngoing(seen.state))
      return { problem: `the task ${id} of ${slug} is ${seen.state} and does not end` };
    if (plainState(seen.state) === 'failed' && !seen.hasMessage)
      return { problem: `the task ${id} of ${slug} has failed without a reason` };
    return { state: plainState(seen.state) };
  }

  /** The task of an answer, or what is wrong with the answer; `refused: …` = it is an error, in good form. */
  private async call(slug: string, version: Version, method: string, params: object): Promise<Seen | string> {
    const headers = {
      authorization: `Bearer ${this.token}`,
      'content-type': 'application/json',
      'a2a-version': version,
    };
    const body = Buffer.from(JSON.stringify({ jsonrpc: '2.0', id: 1, method, params }));
    const sent = { method: 'POST', path: `/agents/${slug}`, headers, body };
    const answer = await exchange(this.base, this.http, sent);
    const problem = judge(sent, answer);
    if (problem !== undefined) return `${method}: ${problem}`;
    const { error, result } = JSON.parse((answer as { text: string }).text) as {
      error?: { message: string };
      result?: object;
    };
    if (error) return `refused: ${error.message}`;
    const task = (result && 'task' in result ? result.task : result) as {
      id: string;
      status: { state: string; message?: object };
    };
    return { id: task.id, state: task.status.state, hasMessage: task.status.message !== undefined };
  }
}

const refusedOr = (answer: string): Ending =>
  answer.startsWith('refused: ') ? { state: 'refused' } : { problem: answer };

const plainState = (state: string): string =>
  state.replace('TASK_STATE_', '').toLowerCase().replaceAll('_', '-');

const isOngoing = (state: string): boolean => ['submitted', 'working'].includes(plainState(state));

function sendParams(version: Version): object {
  const ids = { messageId: randomUUID() };
  return version === '1.0'
    ? {
        message: { ...ids, role: 'ROLE_USER', parts: [{ text: 'hello' }] },
        configuration: { returnImmediately: true },
      }
    : {
        message: { ...ids, kind: 'message', role: 'user', parts: [{ kind: 'text', text: 'hello' }] },
        configuration: { blocking: false },
      };
}
