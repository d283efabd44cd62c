import { Stack, type StackOptions } from './stack.js';

interface Shared {
  env: Record<string, string>;
  running?: Promise<Stack>;
}

/** Those of the file of tests, by messaging driver. */
const shared = new Map<StackOptions['driver'], Shared>();

afterAll(async () => {
  for (const { running } of shared.values()) await (await running)?.stop();
});

/** For subjects that need one. They share a Baton, so it is the same for all. */
export const MASTER_KEY = Buffer.alloc(32, 7).toString('base64');

/**
 * A Baton that the subjects of one file of tests share: its start costs more CPU than most subjects. Each subject is a module with
 * tenants of its own. It calls this outside of hooks and tests, with the settings that it needs. The Baton has the settings of all
 * subjects of the file. It starts when the first of them asks for it, and stops after the last test.
 *
 * A subject leaves the APIs alone. It may kill the worker, and starts another one.
 */
export function shareStack(
  driver: StackOptions['driver'],
  env: Record<string, string> = {},
): () => Promise<Stack> {
  const stack = shared.get(driver) ?? { env: {} };
  shared.set(driver, stack);
  for (const [name, value] of Object.entries(env)) {
    if ((stack.env[name] ?? value) !== value)
      throw new Error(`Subjects of one file need different values of ${name}: they cannot share a Baton.`);
    stack.env[name] = value;
  }
  return () => (stack.running ??= Stack.start({ driver, env: stack.env }));
}
