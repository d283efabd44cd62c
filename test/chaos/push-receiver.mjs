// A receiver of webhooks that may be killed at any moment: `node push-receiver.mjs <port> <file>`. Before it answers it writes
// a line for each request: its id, when it came, and whether the secret of SECRET verifies it.
import { appendFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { Webhook } from 'standardwebhooks';

const [port, file] = process.argv.slice(2);
const webhook = new Webhook(process.env.SECRET);

function isGenuine(headers, body) {
  try {
    webhook.verify(body, headers);
    return true;
  } catch {
    return false;
  }
}

const server = createServer((request, response) => {
  const at = Date.now();
  const chunks = [];
  request.on('data', (chunk) => chunks.push(chunk));
  request.on('end', () => {
    const genuine = isGenuine(request.headers, Buffer.concat(chunks));
    appendFileSync(file, `${JSON.stringify({ id: request.headers['webhook-id'], at, genuine })}\n`);
    response.end();
  });
});
server.listen(Number(port), '127.0.0.1', () => process.send('ready'));
