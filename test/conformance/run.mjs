// TCK=<checkout of a2aproject/a2a-tck> npm run conformance -- [arguments of run_tck.py]
// Starts Baton with the agent of agents/tck, and runs the official Technology Compatibility Kit of A2A on it: 1.0 or 0.3,
// as the checkout is. The TCK sends no credentials, so a proxy on the loopback adds the token. Its reports are in `reports/`
// of the checkout. docs/calling/conformance.md has the results.
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { once } from 'node:events';
import { existsSync, readFileSync } from 'node:fs';
import http from 'node:http';
import http2 from 'node:http2';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import getPort from 'get-port';
import { startBaton } from '../../bench/servers.mjs';

const AGENTS = fileURLToPath(new URL('agents', import.meta.url));
const AGENT = '/agents/tck';
const ENV = {
  BATON_AGENTS_DIR: AGENTS,
  // The TCK receives push notifications on this machine, and makes configs for example.com, which may have no address here.
  OUTBOUND_ALLOW: 'localhost,127.0.0.1,::1,example.com',
  BATON_MASTER_KEY: randomBytes(32).toString('base64'),
};

/**
 * Forwards every request to `url` with the token. The `Host` stays, so cards name the proxy. Its root has the agent's card,
 * where the TCK of 0.3 looks for it.
 */
async function startProxy(url, token) {
  const { hostname, port } = new URL(url);
  const server = http.createServer((request, response) => {
    const headers = { ...request.headers, authorization: `Bearer ${token}` };
    const { method, url: asked } = request;
    const path = asked.startsWith('/.well-known/agent') ? AGENT + asked : asked;
    const forwarded = http.request({ hostname, port, method, path, headers }, (answer) => {
      response.writeHead(answer.statusCode, answer.headers);
      answer.pipe(response);
    });
    forwarded.on('error', () => response.destroy());
    response.on('close', () => forwarded.destroy());
    request.pipe(forwarded);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  return server;
}

/** The same for gRPC. The TCK names no agent, so the proxy does. */
async function startGrpcProxy(grpcPort, credentials) {
  let upstream;
  const server = http2.createServer();
  server.on('stream', (stream, headers) => {
    if (!upstream || upstream.closed) upstream = http2.connect(`http://127.0.0.1:${grpcPort}`);
    upstream.on('error', () => undefined);
    const forwarded = upstream.request({ ...headers, ...credentials(), 'baton-agent': 'tck' });
    let trailers = {};
    forwarded.on('response', (answer, flags) => {
      // An error without messages is nothing but headers.
      const endStream = (flags & http2.constants.NGHTTP2_FLAG_END_STREAM) !== 0;
      stream.respond(answer, { endStream, waitForTrailers: !endStream });
      if (!endStream) forwarded.pipe(stream);
    });
    forwarded.on('trailers', (received) => (trailers = received));
    stream.on('wantTrailers', () => stream.sendTrailers(trailers));
    stream.on('close', () => forwarded.close(http2.constants.NGHTTP2_CANCEL));
    for (const each of [stream, forwarded]) each.on('error', () => undefined);
    stream.pipe(forwarded);
  });
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const close = () => {
    upstream?.destroy();
    server.close();
  };
  return { address: `127.0.0.1:${server.address().port}`, close };
}

async function main() {
  const tck = process.env.TCK;
  if (!tck || !existsSync(join(tck, 'run_tck.py'))) {
    console.error('Set TCK to the folder of a checkout of a2aproject/a2a-tck.');
    return 2;
  }
  const ownPython = join(tck, '.venv/bin/python');
  const python = process.env.PYTHON ?? (existsSync(ownPython) ? ownPython : 'python3');
  const grpcPort = await getPort({ host: '127.0.0.1' });
  let token = '';
  const grpc = await startGrpcProxy(grpcPort, () => ({ authorization: `Bearer ${token}` }));
  const baton = await startBaton({
    workers: 1,
    env: {
      ...ENV,
      GRPC_PORT: String(grpcPort),
      GRPC_PUBLIC_ADDRESS: grpc.address,
    },
  });
  ({ token } = baton);
  const proxy = await startProxy(baton.url, baton.token);
  try {
    const host = `http://127.0.0.1:${proxy.address().port}${AGENT}`;
    // The TCK of 0.3 has another name for it.
    const option = readFileSync(join(tck, 'run_tck.py'), 'utf8').includes('--sut-host')
      ? '--sut-host'
      : '--sut-url';
    const args = ['run_tck.py', option, host, ...process.argv.slice(2)];
    const run = spawn(python, args, { cwd: tck, stdio: 'inherit' });
    const [code] = await once(run, 'exit');
    return code ?? 1;
  } finally {
    proxy.close();
    proxy.closeAllConnections();
    grpc.close();
    await baton.stop();
  }
}

process.exitCode = await main();
