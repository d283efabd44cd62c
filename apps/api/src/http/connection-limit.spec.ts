import { createLogger } from '@baton/telemetry';
import { once } from 'node:events';
import { type AddressInfo, type Socket, connect } from 'node:net';
import { createServer, type Server } from 'node:http';
import { setTimeout as delay } from 'node:timers/promises';
import { limitConnections, openFilesLimit } from './connection-limit.js';

let lines: string[];
const logger = createLogger({ logLevel: 'info' }, 'api', { write: (line: string) => void lines.push(line) });
let server: Server;
const callers: Socket[] = [];

beforeEach(async () => {
  lines = [];
  server = createServer((_, response) => response.end('served')).listen(0, '127.0.0.1');
  await once(server, 'listening');
});
afterEach(async () => {
  for (const caller of callers.splice(0)) caller.destroy();
  server.close();
  await once(server, 'close');
});

/** A caller who asks and stays connected; what he got before his connection was closed or answered. */
async function call(): Promise<string> {
  const caller = connect((server.address() as AddressInfo).port, '127.0.0.1');
  callers.push(caller);
  caller.on('error', () => undefined).write('GET / HTTP/1.1\r\nhost: x\r\n\r\n');
  const [said] = (await Promise.race([once(caller, 'data'), once(caller, 'close')])) as [Buffer | boolean];
  return Buffer.isBuffer(said) ? said.toString() : 'closed';
}

it('an API that could run out of files refuses connections while it has some left, and says how to get more', async () => {
  limitConnections(server, 128 + 2, logger);
  expect(JSON.parse(lines[0]!)).toMatchObject({
    msg: expect.stringMatching(
      /^this process accepts at most 2 connections: raise the limit of open files \(ulimit -n/,
    ) as string,
    openFiles: 130,
  });
  expect(await call()).toContain('served');
  expect(await call()).toContain('served');
  expect([await call(), await call()]).toEqual(['closed', 'closed']);
  const refusals = lines.slice(1).map((line) => JSON.parse(line) as Record<string, unknown>);
  // Once, however many are refused within ten seconds.
  expect(refusals).toMatchObject([
    {
      msg: expect.stringMatching(/^connections refused, 2 are open: raise the limit of open files/) as string,
      refused: 1,
      openFiles: 130,
    },
  ]);
  callers[0]!.destroy();
  // It takes a moment to notice.
  while ((await call()) === 'closed') await delay(10);
});

it('where files are enough or without limit nothing is said', () => {
  limitConnections(server, 1_000_000, logger);
  limitConnections(server, Infinity, logger);
  expect([lines, server.maxConnections]).toEqual([[], 1_000_000 - 128]);
  expect(openFilesLimit()).toBeGreaterThan(0);
});
