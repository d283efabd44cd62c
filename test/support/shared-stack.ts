import { cpSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { Stack, type StackOptions } from './stack.js';

/** What a subject needs besides settings. */
interface SharedNeeds {
  /** The number of API processes. The Baton has as many as the subject that needs most. Default: 1. */
  apis?: number;
  /**
   * Writes the agents in code of the subject before the Baton starts.
   * @param agents the folder of the agents of all subjects, `BATON_AGENTS_DIR`
   * @param folder agents can write below it, `EXECUTOR_WRITE`
   * @returns if it has started servers: a function that stops them, after the Baton
   */
  installAgents?: (agents: string, folder: string) => unknown;
}

interface Shared {
  driver: StackOptions['driver'];
  env: Record<string, string>;
  apis: number;
  installs: NonNullable<SharedNeeds['installAgents']>[];
  folder?: string;
  stopServers: (() => unknown)[];
  running?: Promise<Stack>;
}

/** Those of the file of tests, by messaging driver. */
const shared = new Map<StackOptions['driver'], Shared>();

afterAll(async () => {
  for (const { running, folder, stopServers } of shared.values()) {
    await (await running)?.stop();
    for (const stop of stopServers) await stop();
    if (folder !== undefined) rmSync(folder, { recursive: true, force: true });
  }
});

/** For subjects that need one. They share a Baton, so it is the same for all. */
export const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');

/** For subjects that show what models cost. */
export const PRICES = {
  MODEL_PRICES: '{"openai-compatible/*":{"input":10000,"output":10000}}',
  MODEL_PRICES_CURRENCY: 'EUR',
};

/**
 * A Baton that the subjects of one file of tests share: its start costs more CPU than most subjects. Each subject is a module with
 * tenants of its own. It calls this outside of hooks and tests, with what it needs. The Baton has the settings and agents of all
 * subjects of the file. It starts when the first of them asks for it, and stops after the last test.
 *
 * A subject leaves the APIs alone. It may kill the worker, and starts another one.
 */
export function shareStack(
  driver: StackOptions['driver'],
  env: Record<string, string> = {},
  { apis = 1, installAgents }: SharedNeeds = {},
): () => Promise<Stack> {
  const stack: Shared = shared.get(driver) ?? { driver, env: {}, apis, installs: [], stopServers: [] };
  shared.set(driver, stack);
  stack.apis = Math.max(stack.apis, apis);
  if (installAgents) stack.installs.push(installAgents);
  for (const [name, value] of Object.entries(env)) {
    if ((stack.env[name] ?? value) !== value)
      throw new Error(`Subjects of one file need different values of ${name}: they cannot share a Baton.`);
    stack.env[name] = value;
  }
  return () => (stack.running ??= start(stack));
}

async function start(stack: Shared): Promise<Stack> {
  const { driver, env, apis, installs, stopServers } = stack;
  if (installs.length === 0) return Stack.start({ driver, apis, env });
  const folder = mkdtempSync(join(tmpdir(), 'baton-shared-'));
  stack.folder = folder;
  const agents = join(folder, 'agents');
  mkdirSync(agents);
  for (const install of installs) {
    const stop = await install(agents, folder);
    if (typeof stop === 'function') stopServers.push(stop as () => unknown);
  }
  const ofAgents = {
    BATON_AGENTS_DIR: agents,
    EXECUTOR_WRITE: folder,
    HOLD_FILE: join(folder, 'hold'),
    WITNESS_FILE: join(folder, 'witness'),
  };
  return Stack.start({ driver, apis, env: { ...env, ...ofAgents } });
}

/** Copies agents of `test/agents`. Several subjects may need the same one. */
export function installTestAgents(agents: string, ...names: string[]): void {
  for (const name of names)
    cpSync(join(__dirname, '../agents', name), join(agents, name), { recursive: true });
}
