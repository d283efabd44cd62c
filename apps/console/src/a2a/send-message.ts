import { fetchApi } from '../api/client';

interface OutgoingMessage {
  /** The agent. */
  agent: string;
  /** Unset: the message begins a task. */
  taskId?: string;
  parts: readonly object[];
  headers?: Readonly<Record<string, string>>;
}

interface SendAnswer {
  result?: { task: { id: string } };
  error?: { message: string };
}

/**
 * Sends a message to an agent, and does not wait for the outcome.
 * @returns the id of its task
 * @throws Error with the reason
 */
export async function sendMessage({ agent, taskId, parts, headers = {} }: OutgoingMessage): Promise<string> {
  const message = {
    messageId: crypto.randomUUID(),
    ...(taskId !== undefined && { taskId }),
    role: 'ROLE_USER',
    parts,
  };
  const params = { message, configuration: { returnImmediately: true } };
  const response = await fetchApi(`/agents/${encodeURIComponent(agent)}`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params }),
  });
  const { result, error } = (await response.json()) as SendAnswer;
  if (!result) throw new Error(error?.message ?? `The server answers with ${response.status}.`);
  return result.task.id;
}
