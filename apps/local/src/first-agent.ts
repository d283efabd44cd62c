import { randomUUID } from 'node:crypto';

const SLUG = 'guide';
/** Maximum duration of a request: the agent takes about a second. */
const TIMEOUT_MS = 20_000;

const QUESTION = 'What happens to a message that I send to an agent?';

const documentOf = (modelUrl: string) => ({
  slug: SLUG,
  name: 'Guide',
  description:
    'Asks another agent and says what it has read. Its model is a script of npm start, which needs no key.',
  runtime: 'llm',
  inputModes: ['text/plain'],
  outputModes: ['text/plain'],
  skills: [
    {
      id: 'try',
      name: 'Try Baton',
      description: 'Shows a call of a model, a call of another agent, and an answer.',
      tags: ['example'],
      examples: [QUESTION],
    },
  ],
  config: {
    model: 'openai-compatible/scripted',
    baseUrl: modelUrl,
    prompt: 'You show people how Baton works. Ask the agent echo before you answer.',
    agents: ['echo'],
    record: 'all',
  },
});

/** An agent of the tenant `demo`, so that the console has an agent, a task and a trace from the start. */
export class FirstAgent {
  constructor(
    /** The address of the API on this machine. */
    private readonly url: string,
    private readonly token: string,
  ) {}

  /**
   * Makes the agent, and has it answer one message. Rejects with the reason if one of them fails.
   * @returns false: there is another agent of that name, which stays as it is
   */
  async make(modelUrl: string): Promise<boolean> {
    const document = documentOf(modelUrl);
    const found = await this.definition();
    if (found && found.config?.model !== document.config.model) return false;
    await this.call('PUT', `/v1/agents/${SLUG}`, document);
    const message = { messageId: randomUUID(), role: 'ROLE_USER', parts: [{ text: QUESTION }] };
    const request = { jsonrpc: '2.0', id: 1, method: 'SendMessage', params: { message } };
    await this.call('POST', `/agents/${SLUG}`, request);
    return true;
  }

  /** Updates the URL of the agent's model, if it still has that of an earlier start. An agent that was deleted stays deleted. */
  async moveModel(from: string, to: string): Promise<void> {
    const definition = await this.definition();
    if (definition?.config?.baseUrl !== from) return;
    const config = { ...definition.config, baseUrl: to };
    await this.call('PUT', `/v1/agents/${SLUG}`, { ...definition, config });
  }

  /** That of the agent; undefined: no agent has that name. */
  private async definition(): Promise<{ config?: { baseUrl?: string; model?: string } } | undefined> {
    const answer = await this.fetch('GET', `/v1/agents/${SLUG}`);
    if (!answer.ok) return undefined;
    return ((await answer.json()) as { definition: { config?: { baseUrl?: string; model?: string } } })
      .definition;
  }

  private async call(method: string, path: string, body: object): Promise<void> {
    const answer = await this.fetch(method, path, body);
    const text = await answer.text();
    if (!answer.ok || text.includes('"error":{')) throw new Error(`${method} ${path}: ${text.slice(0, 500)}`);
  }

  private fetch(method: string, path: string, body?: object): Promise<Response> {
    return fetch(this.url + path, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        'content-type': 'application/json',
        'a2a-version': '1.0',
      },
      signal: AbortSignal.timeout(TIMEOUT_MS),
      ...(body && { body: JSON.stringify(body) }),
    });
  }
}
