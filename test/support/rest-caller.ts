/* oxlint-disable typescript/no-explicit-any -- tests look at the wire */

/** An answer of the REST API. */
export interface RestAnswer {
  status: number;
  text: string;
  /** Undefined without a body. */
  json: any;
}

/** Calls the REST API of a process with a token. */
export class RestCaller {
  constructor(
    private readonly url: string,
    private readonly token: string,
  ) {}

  /** Resolves with any status. @param path from `/v1` on */
  async call(method: string, path: string, body?: object): Promise<RestAnswer> {
    const response = await fetch(`${this.url}${path}`, {
      method,
      headers: {
        authorization: `Bearer ${this.token}`,
        ...(body && { 'content-type': 'application/json' }),
      },
      ...(body && { body: JSON.stringify(body) }),
    });
    const text = await response.text();
    const isJson = response.headers.get('content-type')?.includes('json');
    return { status: response.status, text, json: isJson && text !== '' ? JSON.parse(text) : undefined };
  }

  /** The JSON of an answer, also of an error. */
  async get(path: string): Promise<any> {
    return (await this.call('GET', path)).json;
  }

  /** Rejects unless the answer is a success. @returns its JSON */
  async write(method: string, path: string, body?: object): Promise<any> {
    const { status, text, json } = await this.call(method, path, body);
    if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    return json;
  }

  /** The task and its details, as `GET /v1/tasks/{id}` has them. */
  task(id: string): Promise<any> {
    return this.get(`/v1/tasks/${id}`);
  }

  /** The events of a task as text, when its turn has ended: its stream ends then. */
  async events(id: string): Promise<string> {
    return (await this.call('GET', `/v1/tasks/${id}/events`)).text;
  }

  /** The A2A task when its turn has ended. */
  async endedTask(id: string): Promise<any> {
    await this.events(id);
    return (await this.task(id)).task;
  }
}
