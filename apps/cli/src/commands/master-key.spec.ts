import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { text as readText } from 'node:stream/consumers';
import { EXIT } from '../exit.js';
import { run } from '../program.js';

const KEY = Buffer.alloc(32, 9).toString('base64');
const TOKEN = 'hvs.hunter2';
const folder = mkdtempSync(join(tmpdir(), 'baton-vault-'));
const wrapped = join(folder, 'wrapped');

/** What a Vault answers at these paths, with its own forms of answers and errors (API of KV 2 and transit). */
let vault: Server;
let address: string;
let asked: { line: string; headers: Record<string, unknown>; body: string }[] = [];
let sealed = 0;

beforeAll(async () => {
  writeFileSync(wrapped, 'vault:v1:abc\n');
  vault = createServer((request, response) => void serve(request, response));
  await new Promise<void>((resolve) => vault.listen(0, '127.0.0.1', resolve));
  address = `http://127.0.0.1:${(vault.address() as AddressInfo).port}`;
});

async function serve(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await readText(request);
  const line = `${request.method ?? ''} ${request.url ?? ''}`;
  asked.push({ line, headers: request.headers, body });
  const answer = (status: number, json: object): void => {
    response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(json));
  };
  if (sealed-- > 0) return void answer(503, { errors: ['Vault is sealed'] });
  const token = request.headers['x-vault-token'];
  if (token !== TOKEN) return void answer(403, { errors: [`permission denied: ${String(token)}`] });
  if (line === 'GET /v1/secret/data/apps/baton') {
    const data = { data: { master_key: KEY, other: 7 }, metadata: { version: 1 } };
    return void answer(200, { request_id: 'r', lease_duration: 0, renewable: false, data });
  }
  if (line === 'POST /v1/transit/decrypt/baton' && body === '{"ciphertext":"vault:v1:abc"}')
    return void answer(200, { request_id: 'r', data: { plaintext: KEY } });
  return void answer(404, { errors: [] });
}

afterEach(() => {
  asked = [];
  sealed = 0;
});
afterAll(() => {
  vault.close();
  rmSync(folder, { recursive: true });
});

async function vaultKey(options: string[], env: Record<string, string> = {}) {
  let [out, err] = ['', ''];
  const terminal = {
    out: (line: string) => void (out += line),
    err: (line: string) => void (err += line),
  };
  const source = { VAULT_ADDR: address, VAULT_TOKEN: TOKEN, ...env };
  const stdin = () => process.stdin;
  const cli = { source, stdin, terminal } as unknown as Parameters<typeof run>[1];
  const code = await run(['master-key', 'vault', ...options], cli);
  return { code, out, err };
}

describe('the master key in Vault', () => {
  it('is read from a KV engine', async () => {
    const seen = await vaultKey(['--kv', 'secret/apps/baton'], { VAULT_NAMESPACE: 'team' });
    expect(seen).toEqual({ code: 0, out: KEY, err: '' });
    expect(asked[0]?.headers).toMatchObject({ 'x-vault-request': 'true', 'x-vault-namespace': 'team' });
  });

  it('is unwrapped by a transit engine', async () => {
    expect(await vaultKey(['--transit', 'transit/baton', '--wrapped', wrapped])).toMatchObject({ out: KEY });
  });

  it('is asked for with the token of a file, and again while Vault is sealed', async () => {
    sealed = 2;
    const file = join(folder, 'token');
    writeFileSync(file, `${TOKEN}\n`);
    const env = { VAULT_TOKEN_FILE: file, VAULT_TOKEN: undefined } as unknown as Record<string, string>;
    expect(await vaultKey(['--kv', 'secret/apps/baton'], env)).toMatchObject({ out: KEY });
    expect(asked).toHaveLength(3);
  });

  it.each<[string, string[], Record<string, string>, RegExp]>([
    [
      'a token without the right',
      ['--kv', 'secret/apps/baton'],
      { VAULT_TOKEN: 'hvs.other' },
      /answers 403: .*\[token\]/,
    ],
    [
      'a path that is not there',
      ['--kv', 'secret/none'],
      {},
      /answers 404.*Check the path \/v1\/secret\/data\/none/,
    ],
    [
      'a field that is not there',
      ['--kv', 'secret/apps/baton', '--field', 'x'],
      {},
      /no text in the field "x"/,
    ],
    [
      'a field that is no text',
      ['--kv', 'secret/apps/baton', '--field', 'other'],
      {},
      /no text in the field/,
    ],
    [
      'no Vault',
      ['--kv', 'secret/apps/baton'],
      { VAULT_ADDR: 'http://127.0.0.1:2' },
      /cannot be reached \(ECONNREFUSED\)/,
    ],
    ['no address', ['--kv', 'secret/apps/baton'], { VAULT_ADDR: '' }, /Set VAULT_ADDR/],
    ['no key', [], {}, /Name the key with --kv/],
    ['half a key', ['--transit', 'transit/baton'], {}, /Name the key with --kv/],
    ['a mount alone', ['--kv', 'secret'], {}, /names no key of Vault/],
    ['no file', ['--transit', 'transit/baton', '--wrapped', '/none'], {}, /--wrapped: \/none cannot be read/],
  ])('is not given for %s, and the error has no token', async (what, options, env, error) => {
    const seen = await vaultKey(options, env);
    const code = /^(no key|half a key)$/.test(what) ? EXIT.usage : EXIT.failed;
    expect(seen).toMatchObject({ code, out: '', err: expect.stringMatching(error) as string });
    expect(seen.err).not.toMatch(/hvs\./);
  });
});
