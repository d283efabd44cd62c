import { AgentEvent } from '@a2a-js/sdk/server';
import { randomUUID } from 'node:crypto';
import { setTimeout as delay } from 'node:timers/promises';

const COMPLETED = 3;
const INPUT_REQUIRED = 6;
const USER = 1;
const AGENT = 2;
const part = (value) => ({ content: { $case: 'text', value }, filename: '', mediaType: '' });

/**
 * One line a chunk: "<execution> <worker's pid> <turn>.<line> <what the user said>". A reader of the log sees
 * which execution wrote which line, so two that write at once show. Every turn but the last ends with a
 * question. `metadata.scribe` of each message has the number of turns, lines a turn, and ms between them. With an
 * even number of lines each of them is a durable step, and the execution begins with `dddd`. With a multiple of four the turn
 * is suspended in its middle.
 */
export default class Scribe {
  #stop = new AbortController();

  async execute({ taskId, contextId, userMessage, task, context }, bus) {
    const { turns, lines, delayMs } = userMessage.metadata.scribe;
    const said = userMessage.parts.map(({ content }) => content?.value).join('');
    const turn = task ? task.history.filter(({ role }) => role === USER).length : 1;
    const isDurable = lines % 2 === 0;
    const id = randomUUID().slice(0, 8);
    const me = `${isDurable ? `dddd${id.slice(4)}` : id} ${process.pid}`;
    const artifactId = `turn-${turn}`;
    for (let line = 1; line <= lines; line++) {
      const wait = () => delay(delayMs, undefined, { signal: this.#stop.signal });
      await (isDurable ? context.step('line', wait) : wait());
      if (lines % 4 === 0 && line === lines / 2) await context.sleep('middle', 1_200);
      const artifact = { artifactId, name: artifactId, parts: [part(`${me} ${turn}.${line} ${said}`)] };
      // It never marks its beginning: Baton must replace the output of a dead attempt by that of the new one.
      const more = { append: true, lastChunk: line === lines };
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, ...more }));
    }
    const question = { messageId: randomUUID(), role: AGENT, parts: [part(`question ${turn}`)] };
    const status =
      turn < turns
        ? { state: INPUT_REQUIRED, message: { ...question, taskId, contextId } }
        : { state: COMPLETED };
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status }));
    bus.finished();
  }

  async cancelTask() {
    this.#stop.abort();
  }
}
