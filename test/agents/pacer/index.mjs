import { AgentEvent } from '@a2a-js/sdk/server';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const COMPLETED = 3;
const INPUT_REQUIRED = 6;
const textOf = ({ parts }) => parts.map(({ content }) => content?.value).join('');

/** `count 4`: so many chunks. `4 times hi`: the same text in so many chunks. `ask`: asks, and says what it was answered. `wait`: nothing. Else: that text. */
export default class Pacer {
  #canceled = false;

  async execute({ taskId, contextId, userMessage, task }, bus) {
    const chunk = (value, append) => {
      const parts = [{ content: { $case: 'text', value }, filename: '', mediaType: '' }];
      const artifact = { artifactId: 'said', name: 'said', parts };
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk: false }));
    };
    const end = (state) => {
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state } }));
      bus.finished();
    };
    const text = textOf(userMessage);
    if (text === 'ask' && !task) return end(INPUT_REQUIRED);
    if (text === 'wait') return this.#until(() => this.#canceled);
    const [, count] = /^count (\d+)/.exec(text) ?? [];
    const [, times, same] = /^(\d+) times (.+)$/s.exec(text) ?? [];
    for (let i = 1; i <= Number(count ?? times ?? 1) && !this.#canceled; i++) {
      chunk(count === undefined ? (same ?? text) : `${i} `, i > 1);
      await this.#until(() => this.#canceled || !existsSync(process.env.HOLD_FILE ?? ''));
    }
    if (!this.#canceled) end(COMPLETED);
  }

  async #until(isSo) {
    while (!isSo()) await sleep(20);
  }

  async cancelTask() {
    this.#canceled = true;
  }
}
