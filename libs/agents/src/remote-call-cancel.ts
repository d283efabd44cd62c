import type { Agent } from '@baton/a2a';
import { z } from 'zod';
import type { JournalEntry } from './agent-runtime.js';
import { type LlmConfig, llmConfigSchema, toolsAlone } from './runtimes/llm/llm-config.js';
import type { ToolCheckPorts } from './tool-checks.js';
import { splitJournal } from './task-origin.js';

/** Maximum time for one call, in ms. */
const CANCEL_MS = 10_000;

/** Entries of an llm agent (`Conversation`) or of code (`TurnSteps`), as far as they are about calls that servers execute as tasks of their own. */
const remoteEntry = z.object({
  kind: z.literal('remote'),
  call: z.string(),
  /** Of code: the settings of the server. Those of an llm agent are in its definition. */
  settings: z.unknown().optional(),
  remote: z.object({
    server: z.string(),
    url: z.string(),
    task: z.object({ taskId: z.string() }).optional(),
  }),
});
const resultEntry = z.object({ kind: z.literal('result'), call: z.string() });

type RemoteEntry = z.output<typeof remoteEntry>;

/**
 * Cancels the tasks at tool servers that the calls of a canceled task still wait for. A server that is no longer in the settings of the agent
 * cannot be called.
 * @param stored the whole journal of the task
 * @returns whether all servers have got the cancel, or need none
 */
export async function cancelRemoteCalls(
  agent: Agent | undefined,
  stored: JournalEntry[],
  { outbound, secrets, environment, logger }: ToolCheckPorts,
): Promise<boolean> {
  const calls = openCalls(stored);
  if (!agent || calls.length === 0) return true;
  const { cancelAtServer } = await import('./runtimes/llm/tools/mcp/cancel-at-server.js');
  const cancels = calls.map(async (call) => {
    const { server, url, task } = call.remote;
    const settings = configOf(agent, call)?.tools.mcp.find(({ name }) => name === server);
    if (!task || !settings || !('url' in settings) || settings.url !== url) return true;
    const ports = { outbound, secrets, environment, log: logger };
    return cancelAtServer(settings, ports, task.taskId, AbortSignal.timeout(CANCEL_MS));
  });
  return (await Promise.all(cancels)).every(Boolean);
}

function configOf({ definition }: Agent, { settings }: RemoteEntry): LlmConfig | undefined {
  if (definition.runtime === 'llm') return llmConfigSchema.safeParse(definition.config).data;
  return llmConfigSchema.safeParse(toolsAlone([settings])).data;
}

/** The calls without a result. Those that a fork has from its origin belong to that. */
function openCalls(stored: JournalEntry[]): RemoteEntry[] {
  const { origin, entries } = splitJournal(stored);
  const own = origin && !origin.effectsOf ? entries.slice(origin.copied) : entries;
  const open = new Map<string, RemoteEntry>();
  for (const { value } of own) {
    const remote = remoteEntry.safeParse(value).data;
    if (remote) open.set(remote.call, remote);
    const result = resultEntry.safeParse(value).data;
    if (result) open.delete(result.call);
  }
  return [...open.values()].filter(({ remote }) => remote.task !== undefined);
}
