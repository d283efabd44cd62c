// The servers of the neighbour in bench/neighbours.mjs: a remote agent, and a receiver of its webhook.
import { createServer } from 'node:http';

/** The card of an agent. @param url of its JSON-RPC */
export const cardOf = (url, streaming = false) => ({
  name: 'Friend',
  description: 'Answers.',
  version: '1',
  capabilities: { streaming },
  defaultInputModes: ['text/plain'],
  defaultOutputModes: ['text/plain'],
  skills: [],
  supportedInterfaces: [{ url, protocolBinding: 'JSONRPC', protocolVersion: '1.0' }],
});

/** Starts them. @param onDelivery called with each delivery of a webhook @returns their port */
export async function startFriend(onDelivery) {
  const server = createServer(async (request, response) => {
    let body = '';
    for await (const chunk of request.setEncoding('utf8')) body += chunk;
    if (request.url !== '/hook') return answerAsAgent(request, body, response);
    const { challenge, ...delivery } = JSON.parse(body);
    response.end(challenge);
    if (!challenge) onDelivery(delivery);
  });
  await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
  return server.address().port;
}

/** An agent of A2A 1.0 that answers at once. */
function answerAsAgent({ method, headers: { host } }, body, response) {
  response.writeHead(200, { 'content-type': 'application/json' });
  response.end(method === 'GET' ? JSON.stringify(cardOf(`http://${host}/rpc`)) : completedTask(body));
}

/** The answer to a message: a task that has ended. @param body of the request */
export function completedTask(body) {
  const task = { id: crypto.randomUUID(), contextId: 'c', status: { state: 'TASK_STATE_COMPLETED' } };
  return JSON.stringify({ jsonrpc: '2.0', id: JSON.parse(body).id, result: { task } });
}
