// A client of MCP for the auth scenarios of the conformance suite, which starts it with the URL of a server: an agent of the running Baton
// that uses this server, and its caller, who follows each link to sign in. BATON has the URL, a token, and the address of a model.
const { url, token, model } = JSON.parse(process.env.BATON);
const {
  client_id: clientId,
  client_secret: secret,
  issuer,
} = JSON.parse(process.env.MCP_CONFORMANCE_CONTEXT ?? '{}');
const server = process.argv.at(-1);
const slug = `client-${crypto.randomUUID().slice(0, 8)}`;
const PAUSE_MS = 100;
const LINK = /https?:[^"\s]*\/oauth\/sign-in[^"\s]*/;

async function call(method, path, body) {
  const response = await fetch(url + path, {
    method,
    headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json', 'a2a-version': '1.0' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${text}`);
  return text === '' ? {} : JSON.parse(text);
}
const rpc = async (method, params) =>
  (await call('POST', `/agents/${slug}`, { jsonrpc: '2.0', id: 1, method, params })).result;

/** A browser that keeps cookies and follows no redirect by itself. */
const cookies = new Map();
async function open(address) {
  const cookie = [...cookies].map(([name, value]) => `${name}=${value}`).join('; ');
  const response = await fetch(address, { redirect: 'manual', headers: { cookie, accept: 'text/html' } });
  for (const set of response.headers.getSetCookie()) {
    const [, name, value] = /^([^=]+)=([^;]*)/.exec(set) ?? [];
    cookies.set(name, value);
  }
  return { isGood: response.status < 400, location: response.headers.get('location') };
}

/** @returns false if the authorization server or Baton has refused */
async function signIn(link) {
  const { location: there } = await open(`${link}&go=1`);
  const { location: back } = there ? await open(there) : {};
  return back ? (await open(back)).isGood : false;
}

const oauth = { credentials: 'perCaller', ...(clientId && { clientId }), ...(issuer && { issuer }) };
if (secret) {
  await call('PUT', '/v1/secrets/client', { value: secret, origins: [issuer] });
  oauth.clientSecret = 'client';
}
const mcp = [{ name: 'server', url: server, oauth }];
const config = { model: 'openai-compatible/model', baseUrl: model, tools: { mcp } };
await call('PUT', `/v1/agents/${slug}`, {
  slug,
  name: slug,
  description: 'A client.',
  runtime: 'llm',
  config,
});
const message = { messageId: crypto.randomUUID(), role: 'ROLE_USER', parts: [{ text: 'Use the tool.' }] };
let { task } = await rpc('SendMessage', { message });
const followed = new Set();
while (!/COMPLETED|FAILED|REJECTED|CANCELED/.test(task.status.state)) {
  const [link] = LINK.exec(JSON.stringify(task.status.message ?? '')) ?? [];
  if (link && !followed.has(link)) {
    followed.add(link);
    if (!(await signIn(link))) process.exit(1);
  }
  await new Promise((done) => setTimeout(done, PAUSE_MS));
  task = await rpc('GetTask', { id: task.id });
}
process.exit(task.status.state === 'TASK_STATE_COMPLETED' ? 0 : 1);
