import { parseSigningKey, publicKeyOf } from '@baton/a2a';
import { type ChildProcess, spawn } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import { once } from 'node:events';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { createInterface, type Interface } from 'node:readline';
import { type Delivery, deliveryId, DeliverySigner } from './delivery-signer.js';
import { newSigningSecret } from '@baton/identity';

const PROGRAM = join(__dirname, '../../../../examples/push-receiver/receiver.mjs');
const ORIGIN = 'https://receiver.example';
const [secret, next] = [newSigningSecret(), newSigningSecret()];
const newKey = (): string =>
  generateKeyPairSync('ec', { namedCurve: 'P-256' })
    .privateKey.export({ type: 'pkcs8', format: 'pem' })
    .toString();

let keys: Server;
let receiver: ChildProcess;
let lines: Interface;
let url: string;
let baton: string;
const key = newKey();
const received: string[] = [];

beforeAll(async () => {
  keys = createServer((_, response) => {
    response.end(JSON.stringify({ keys: [publicKeyOf(parseSigningKey(key))] }));
  }).listen(0, '127.0.0.1');
  await once(keys, 'listening');
  baton = `http://127.0.0.1:${(keys.address() as AddressInfo).port}`;
  receiver = spawn(process.execPath, [PROGRAM], {
    env: { BATON: baton, PORT: '0', ORIGIN, TOKEN: 'my-token', SECRETS: `${next} ${secret}` },
    stdio: ['ignore', 'pipe', 'inherit'],
  });
  lines = createInterface({ input: receiver.stdout! });
  const [first] = (await once(lines, 'line')) as [string];
  url = `http://127.0.0.1:${first.split(' ').at(-1)}/`;
  lines.on('line', (line) => received.push(line));
});
afterAll(async () => {
  receiver.kill();
  await once(receiver, 'exit');
  keys.close();
});

const TASK = '01980000-0000-7000-8000-000000000001';
const deliveryOf = (sequence: number): Delivery => ({
  id: deliveryId(TASK, 'mine', sequence),
  body: JSON.stringify({ sequence }),
  url: `${ORIGIN}/hooks`,
  taskId: TASK,
  at: new Date(),
});

interface Changes {
  signingKey?: string;
  delivery?: Partial<Delivery>;
  token?: string;
  secrets?: string[];
  sentBody?: string;
  sentId?: string;
}

/** Sends as Baton does, but for the changes. */
async function deliver(sequence: number, changes: Changes = {}): Promise<string> {
  const delivery = { ...deliveryOf(sequence), ...changes.delivery };
  const signer = new DeliverySigner({
    pushSigningKey: changes.signingKey ?? key,
    cardSigningKey: undefined,
    publicUrl: baton,
  });
  const { token = 'my-token', secrets: signingSecrets = [secret] } = changes;
  const headers = await signer.headers(delivery, { token, signingSecrets });
  if (changes.sentId !== undefined) headers['webhook-id'] = changes.sentId;
  const response = await fetch(url, { method: 'POST', headers, body: changes.sentBody ?? delivery.body });
  return `${response.status} ${await response.text()}`.trim();
}

it('takes what Baton sends, and each event once', async () => {
  for (const sequence of [1, 2, 2, 1, 3]) expect(await deliver(sequence)).toBe('204');
  expect(await deliver(4, { secrets: [next] })).toBe('204');
  // It prints an event before it answers, but its output may come later than the answer.
  while (received.length < 4) await once(lines, 'line');
  expect(received).toEqual([1, 2, 3, 4].map((n) => `${TASK}:mine:${n} {"sequence":${n}}`));
});

it.each<[string, Changes, string]>([
  ['another key', { signingKey: newKey() }, 'the JWT does not verify'],
  ['another token', { token: 'yours' }, 'the token is not mine'],
  ['another secret', { secrets: [newSigningSecret()] }, 'no signature of Standard Webhooks verifies'],
  ['no secret', { secrets: [] }, 'no signature of Standard Webhooks verifies'],
  ['another body', { sentBody: '{"sequence":9,"forged":true}' }, 'the JWT is for another body'],
  ['the id of another event', { sentId: deliveryId(TASK, 'mine', 10) }, 'the JWT does not verify'],
  ['what was meant for another receiver', { delivery: { url: 'https://other.example' } }, 'the JWT does not'],
  [
    'what was sent long ago',
    { delivery: { at: new Date(Date.now() - 3_600_000) } },
    'the JWT does not verify',
  ],
])('refuses %s', async (_, changes, reason) => {
  expect(await deliver(9, changes)).toContain(`401 ${reason}`);
  expect(received.join()).not.toContain('"sequence":9');
});

it('refuses a request without any proof', async () => {
  const response = await fetch(url, {
    method: 'POST',
    body: '{}',
    headers: { 'x-a2a-notification-token': 'my-token' },
  });
  expect(response.status).toBe(401);
});
