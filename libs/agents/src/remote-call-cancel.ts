import type { Agent } from '@baton/a2a';
import { z } from 'zod';
import type { JournalEntry } from './agent-runtime.js';
import { llmConfigSchema } from './runtimes/llm/llm-config.js';
import type { ToolCheckPorts } from './tool-checks.js';
import { splitJournal } from './task-origin.js';

/** Maximum time for one call, in ms. */
const CANCEL_MS = 10_000;

/** Entries of an llm agent (`Conversation`), as far as they are about calls that servers go on with. */
const remoteEntry = z.object({
  kind: z.literal('remote'),
  call: z.string(),
  remote: z.object({
    server: z.string(),
    url: z.string(),
    task: z.object({ taskId: z.string() }).optional(),
  }),
});
const resultEntry = z.object({ kind: z.literal('result'), call: z.string() });

type RemoteEntry = z.output<typeof remoteEntry>['remote'];

/**
 * Cancels the tasks at tool servers that the calls of a canceled task still wait for. A server that is no longer in the settings of the agent
 * cannot be called.
 * @param stored the whole journal of the task
 * @returns whether all servers have been told, or need not be
 */
export async function cancelRemoteCalls(
  agent: Agent | undefined,
  stored: JournalEntry[],
  { outbound, secrets, environment, logger }: ToolCheckPorts,
): Promise<boolean> {
  const calls = openCalls(stored);
  if (!agent || agent.definition.runtime !== 'llm' || calls.length === 0) return true;
  const { success, data: config } = llmConfigSchema.safeParse(agent.definition.config);
  if (!success) return true;
  const { cancelAtServer } = await import('./runtimes/llm/tools/mcp/cancel-at-server.js');
  const told = calls.map(async ({ server, url, task }) => {
    const settings = config.tools.mcp.find(({ name }) => name === server);
    if (!task || !settings || !('url' in settings) || settings.url !== url) return true;
    const ports = { outbound, secrets, environment, log: logger };
    return cancelAtServer(settings, ports, task.taskId, AbortSignal.timeout(CANCEL_MS));
  });
  return (await Promise.all(told)).every(Boolean);
}

/** The calls without a result. Those that a fork has from its origin belong to that. */
function openCalls(stored: JournalEntry[]): RemoteEntry[] {
  const { origin, entries } = splitJournal(stored);
  const own = origin && !origin.effectsOf ? entries.slice(origin.copied) : entries;
  const open = new Map<string, RemoteEntry>();
  for (const { value } of own) {
    const remote = remoteEntry.safeParse(value).data;
    if (remote) open.set(remote.call, remote.remote);
    const result = resultEntry.safeParse(value).data;
    if (result) open.delete(result.call);
  }
  return [...open.values()].filter(({ task }) => task !== undefined);
}
