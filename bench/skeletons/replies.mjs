// The HTTP side of the skeletons' APIs: JSON-RPC calls, and answers made of the events that a worker publishes.
import { Redis } from 'ioredis';
import { randomUUID } from 'node:crypto';
import http from 'node:http';

/**
 * Serves calls on a free port, and sends the port to the parent process.
 * @param accept makes a task of a call. Its errors are the answer.
 * @param enqueue has a worker run the task. The worker publishes the events on `channel`, as `{taskId, events}`.
 */
export async function serve(redisUrl, { accept, enqueue }) {
  // One subscription of the process for all of its calls.
  const channel = `replies-${randomUUID()}`;
  const replies = new Map();
  const subscriber = new Redis(redisUrl);
  subscriber.on('message', (_, text) => {
    const { taskId, events } = JSON.parse(text);
    for (const event of events) if (replies.get(taskId)?.add(event)) replies.delete(taskId);
  });
  await subscriber.subscribe(channel);

  const server = http.createServer(async (request, response) => {
    const call = JSON.parse(await textOf(request));
    try {
      const task = await accept(call, request.headers);
      const Reply = call.method === 'SendStreamingMessage' ? Stream : Answer;
      replies.set(task.id, new Reply(response, call.id, task));
      await enqueue(task, channel);
    } catch (error) {
      response.end(
        JSON.stringify({ jsonrpc: '2.0', id: call.id, error: { code: -32603, message: error.message } }),
      );
    }
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  process.send({ port: server.address().port });
}

const hasEnded = ({ statusUpdate }) => statusUpdate?.status.state === 'TASK_STATE_COMPLETED';

/** A stream of server-sent events. */
class Stream {
  constructor(response, id, task) {
    this.response = response;
    this.id = id;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    this.#write({ task });
  }

  /** Whether this was the last event. */
  add(event) {
    this.#write(event);
    if (hasEnded(event)) this.response.end();
    return hasEnded(event);
  }

  #write(result) {
    this.response.write(`data: ${JSON.stringify({ jsonrpc: '2.0', id: this.id, result })}\n\n`);
  }
}

/** The answer of a blocking send: the task as it has ended. */
class Answer {
  #artifacts = [];

  constructor(response, id, task) {
    Object.assign(this, { response, id, task });
  }

  /** Whether this was the last event. */
  add(event) {
    if (event.artifactUpdate) this.#take(event.artifactUpdate);
    if (!hasEnded(event)) return false;
    const task = { ...this.task, status: event.statusUpdate.status, artifacts: this.#artifacts };
    this.response.setHeader('content-type', 'application/json');
    this.response.end(JSON.stringify({ jsonrpc: '2.0', id: this.id, result: { task } }));
    return true;
  }

  #take({ artifact, append }) {
    if (append) this.#artifacts.at(-1).parts.push(...artifact.parts);
    else this.#artifacts.push(artifact);
  }
}

async function textOf(request) {
  let text = '';
  for await (const chunk of request.setEncoding('utf8')) text += chunk;
  return text;
}
