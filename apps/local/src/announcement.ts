import type { Started } from './local-baton.js';

/** A message to the smoke-test agent that is answered piece by piece, so that the stream can be seen. */
const EXAMPLE = {
  jsonrpc: '2.0',
  id: 1,
  method: 'SendStreamingMessage',
  params: {
    message: {
      // Filled in by the shell: the same message again would join the first task, and stream nothing.
      messageId: 'hello-$(date +%s)',
      role: 'ROLE_USER',
      parts: [{ text: 'Hello, Baton!' }],
      metadata: { echo: { chunks: 5, delayMs: 300 } },
    },
  },
};

/** What `npm start` prints when everything is up: where it is, with which token, and a call that streams. */
export function announcement(
  { demo, signInUrl, grpc, metrics, notes }: Started,
  seconds: number,
  demoFile: string,
  logs: string,
): string {
  return [
    `Baton is ready after ${seconds.toFixed(1)} s.`,
    '',
    ...(signInUrl === undefined
      ? []
      : [`  Console ${signInUrl}`, '          (signs in once, within ten minutes, on this machine)']),
    `  URL     ${demo.url}   (a browser shows the console: sign in with the token)`,
    `  Token   ${demo.token}   (tenant "${demo.tenant}"; also in ${demoFile})`,
    `  gRPC    ${grpc}`,
    `  Metrics ${metrics}`,
    `  Logs    ${logs}`,
    '',
    ...notes.map((note) => `  ${note}`),
    '',
    'A call that streams:',
    '',
    `curl -N ${demo.url}/agents/echo \\`,
    `  -H 'Authorization: Bearer ${demo.token}' \\`,
    `  -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' \\`,
    `  -d '${JSON.stringify(EXAMPLE).replace(/\$\(.+?\)/, `'"$&"'`)}'`,
    '',
    'Ctrl-C stops everything; the tasks are kept.',
  ].join('\n');
}
