import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import { answer, textOf } from '../answer.mjs';

const heard = [];

export default class {
  async execute(context, bus) {
    const text = textOf(context);
    heard.push(text);
    writeFileSync(join(tmpdir(), text.replaceAll(/\W/g, '-')), text);
    const [, gate] = /^until (.+)$/.exec(text) ?? [];
    while (gate && !existsSync(gate)) await delay(20);
    answer(context, bus, JSON.stringify({ pid: process.pid, heard, files: readdirSync(tmpdir()) }));
  }

  async cancelTask() {}
}
