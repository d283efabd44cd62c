import { AgentEvent } from '@a2a-js/sdk/server';
import { appendFileSync, existsSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';

const WORKING = 2;
const COMPLETED = 3;
const textOf = ({ parts }) => parts.map(({ content }) => content.value).join('');

/** Runs the operations of its message; each step writes its name and the id of its process into a file. */
export default class Stepper {
  async execute({ taskId, contextId, userMessage, context }, bus) {
    const { step, sleep, waitForInput, callAgent, continueAs, lastState = 1 } = context;
    const { file, ops } = JSON.parse(textOf(userMessage));
    const say = (state, text) => {
      const message = { messageId: '', role: 2, parts: [{ content: { $case: 'text', value: text } }] };
      bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state, message } }));
    };
    const results = [];
    for (const { op, name, ...more } of ops) {
      if (op === 'say') say(WORKING, name);
      if (op === 'chunk') {
        const artifact = { artifactId: 'a', name: 'a', parts: [{ content: { $case: 'text', value: name } }] };
        bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: more.append }));
      }
      if (op === 'step') {
        const work = async () => {
          appendFileSync(file, `${name} ${process.pid}\n`);
          while (more.until && !existsSync(more.until)) await delay(20);
          return name;
        };
        results.push(await step(name, work));
      }
      if (op === 'again') {
        for (let i = 1; i <= more.steps; i++) {
          await step(name, () =>
            appendFileSync(file, `${name}${(lastState - 1) * more.steps + i} ${process.pid}\n`),
          );
        }
        if (lastState < more.times) await continueAs(lastState + 1);
        results.push(lastState);
      }
      if (op === 'sleep') await sleep(name, more.for);
      if (op === 'ask') {
        const answer = waitForInput(name, more.question, { timeout: more.timeout });
        results.push(await answer.then(textOf, ({ code, message }) => code ?? message));
      }
      if (op === 'race') {
        const time = sleep(`${name} time`, more.for).then(() => 'nobody');
        results.push(await Promise.race([waitForInput(name, more.question).then(textOf), time]));
      }
      if (op === 'call') {
        const reply = await callAgent(name, more.agent, more.message).catch(({ message }) => message);
        results.push(reply.content ?? reply);
      }
    }
    say(COMPLETED, JSON.stringify(results));
  }

  async cancelTask() {
    // Nothing to stop: a step that is under way is abandoned.
  }
}
