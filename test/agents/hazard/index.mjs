import { AgentEvent } from '@a2a-js/sdk/server';
import { AsyncResource } from 'node:async_hooks';
import { existsSync } from 'node:fs';
import { setTimeout as sleep } from 'node:timers/promises';

const COMPLETED = 3;
const textOf = ({ parts }) => parts.map(({ content }) => content?.value).join('');
const hogs = [];
/** Code that belongs to no turn. */
const outside = new AsyncResource('outside');
/** Those who talk wait for each other, so that they talk at the same time. */
const talkers = [];
const LEVELS = ['debug', 'log', 'warn', 'error'];

async function talk(word) {
  await new Promise((go) => {
    talkers.push(go);
    if (talkers.length === 2) for (const other of talkers.splice(0)) other();
  });
  for (let i = 0; i < 8; i++) {
    console[LEVELS[i % LEVELS.length]](`${word} ${i}`);
    await sleep(1);
  }
  process.stderr.write(`${word} to standard error\n`);
}

/** What can go wrong, by name. */
const WAYS = {
  timer: async () => {
    setTimeout(() => {
      throw new Error('thrown in a timer');
    }, 10);
    await sleep(60_000);
  },
  rejection: async () => {
    void Promise.reject(new TypeError('unhandled on purpose'));
    await sleep(60_000);
  },
  'late timer': () => {
    setTimeout(() => {
      throw new Error('thrown after the end');
    }, 10);
  },
  throw: () => {
    console.log('about to throw');
    throw new RangeError('thrown by execute');
  },
  loop: () => {
    for (;;);
  },
  // As `loop`, without the CPU.
  stall: () => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0),
  exit: () => process.exit(3),
  // When the turn has ended, and before the event loop goes on.
  'exit after the end': (say) => {
    say('last words', false);
    outside.runInAsyncScope(() => process.nextTick(() => process.exit(0)));
  },
  kill: () => process.kill(process.pid, 'SIGKILL'),
  heap: () => {
    for (;;) hogs.push(new Array(500_000).fill({}));
  },
  buffers: async () => {
    for (;;) {
      hogs.push(Buffer.alloc(16 * 1024 * 1024, 1));
      await sleep(5);
    }
  },
  publish: (say) => {
    for (let i = 0; i < 60; i++) say('x'.repeat(1024 * 1024), i > 0);
  },
  environment: (say) => say(Object.keys(process.env).sort().join(' '), false),
  pid: (say) => say(String(process.pid), false),
  secret: async (say, { secret }) => {
    const value = await secret('search').catch(({ message }) => `not there: ${message}`);
    console.log(`the secret is ${value}`);
    say(`${value.length}: ${value}`, false);
  },
  extension: (say, context) => {
    context.addActivatedExtension('urn:example:activated');
    say('activated', false);
  },
};

export default class Hazard {
  #canceled = false;

  async execute(requestContext, bus) {
    const { taskId, contextId, userMessage, context } = requestContext;
    const say = (value, append) => {
      const parts = [{ content: { $case: 'text', value }, filename: '', mediaType: '' }];
      const artifact = { artifactId: 'said', name: 'said', parts };
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append, lastChunk: false }));
    };
    const text = textOf(userMessage);
    const [, count, gate] = /^count (\d+)(?: when (\S+) exists)?$/.exec(text) ?? [];
    for (let i = 1; i <= Number(count ?? 0) && !this.#canceled; i++) {
      say(`${i} `, i > 1);
      do await sleep(50);
      while (i > 1 && gate !== undefined && !existsSync(gate) && !this.#canceled);
    }
    if (text === 'mirror') {
      const artifact = { artifactId: 'received', name: 'received', parts: userMessage.parts };
      bus.publish(AgentEvent.artifactUpdate({ taskId, contextId, artifact, append: false, lastChunk: true }));
    }
    if (text.startsWith('talk ')) await talk(text.slice(5));
    await WAYS[text]?.(say, context);
    bus.publish(AgentEvent.statusUpdate({ taskId, contextId, status: { state: COMPLETED } }));
  }

  async cancelTask() {
    this.#canceled = true;
  }
}
