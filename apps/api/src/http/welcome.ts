import { COMMAND_LINE } from '@baton/config';
import type { FastifyReply, FastifyRequest } from 'fastify';

// People open the URL that `npm start` prints. The page is the same for all callers and names no tenant or agent. It has no script and no
// style: the headers of every answer forbid both.
const PAGE = `<!doctype html>
<html lang="en">
<head><meta charset="utf-8"><title>Baton</title></head>
<body>
<h1>Baton</h1>
<p>This is a Baton server. It runs agents that speak the <a href="https://a2a-protocol.org/">Agent2Agent protocol</a> (A2A).
There is nothing to click here: programs call it.</p>
<h2>Call an agent</h2>
<pre>${COMMAND_LINE} send echo "Hello"</pre>
<p>Clients begin with an agent's card. They need a token of a tenant to call the agent.</p>
<ul>
<li><a href="/.well-known/agent-card.json">/.well-known/agent-card.json</a>: the card of this server</li>
<li><code>/agents/{agent}/.well-known/agent-card.json</code>: the card of one agent</li>
</ul>
<h2>Manage tasks and agents</h2>
<ul>
<li><code>${COMMAND_LINE} --help</code>: the command line. <code>${COMMAND_LINE} status</code> says what runs</li>
<li><a href="/v1/openapi.json">/v1/openapi.json</a>: the REST API, as OpenAPI 3.1</li>
<li><a href="/agent.schema.json">/agent.schema.json</a>: the schema of agent files</li>
</ul>
<p>The documentation is in the folder <code>docs</code> of the project. Begin with <code>docs/start/first-call.md</code>.</p>
</body>
</html>
`;

/** Whether a person with a browser asks. Programs ask for JSON or for anything. */
export const isBrowser = ({ method, headers }: Pick<FastifyRequest, 'method' | 'headers'>): boolean =>
  method === 'GET' && /\btext\/html\b/.test(headers.accept ?? '');

/** Leads people from the root to the console. @param base path of PUBLIC_URL, without a slash at its end */
export function sendToConsole(reply: FastifyReply, base: string): void {
  reply
    .status(302)
    .headers({ location: `${base}/console`, vary: 'accept' })
    .send();
}

/** What people see at the root of a host without a console, where programs send JSON-RPC by POST. */
export function sendWelcome(reply: FastifyReply): void {
  reply.header('content-type', 'text/html; charset=utf-8').header('vary', 'accept').send(PAGE);
}
