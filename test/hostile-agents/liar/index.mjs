import { writeSync } from 'node:fs';
import { setTimeout as delay } from 'node:timers/promises';
import { answer, textOf } from '../answer.mjs';

/** The pipe of messages to the worker. */
const PIPE = 4;
const LENGTH_BYTES = 4;

/** The worker counts the turns of a process from 1. */
let turn = 0;

/** A message in a frame. A string is the text itself, JSON or not. */
function frameOf(message) {
  const text = Buffer.from(typeof message === 'string' ? message : JSON.stringify(message));
  const frame = Buffer.alloc(LENGTH_BYTES + text.length);
  frame.writeUInt32BE(text.length);
  text.copy(frame, LENGTH_BYTES);
  return frame;
}

async function write(bytes) {
  for (let from = 0; from < bytes.length;) {
    try {
      from += writeSync(PIPE, bytes, from);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
      await delay(1);
    }
  }
}

export default class {
  async execute(context, bus) {
    turn += 1;
    const { messages = [], bytes, times = 1 } = JSON.parse(textOf(context));
    const frames = messages.map((message) =>
      frameOf(typeof message === 'string' ? message : { turn, ...message }),
    );
    for (let time = 0; time < times; time++) {
      for (const frame of frames) await write(frame);
      if (bytes) await write(Buffer.from(bytes, 'hex'));
    }
    answer(context, bus, 'done');
  }

  async cancelTask() {}
}
