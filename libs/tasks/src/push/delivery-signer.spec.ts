import { parseSigningKey, publicKeyOf } from '@baton/a2a';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { createHash, generateKeyPairSync, type KeyObject } from 'node:crypto';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { type Delivery, deliveryId, DeliverySigner } from './delivery-signer.js';
import { newSigningSecret, signingSecretProblem } from '@baton/identity';

const pem = (key: KeyObject): string => key.export({ type: 'pkcs8', format: 'pem' }).toString();
const ecKey = (): string => pem(generateKeyPairSync('ec', { namedCurve: 'P-256' }).privateKey);
const rsaKey = (): string => pem(generateKeyPairSync('rsa', { modulusLength: 2048 }).privateKey);

const TASK = '01980000-0000-7000-8000-000000000001';
const delivery: Delivery = {
  id: deliveryId(TASK, 'mine', 3),
  body: '{"statusUpdate":{"taskId":"ä"}}',
  url: 'https://receiver.example:8443/hooks?a=b',
  taskId: TASK,
  at: new Date(),
};
const signerWith = (pushSigningKey?: string, cardSigningKey?: string): DeliverySigner =>
  new DeliverySigner({ pushSigningKey, cardSigningKey, publicUrl: 'https://agents.example' });

describe('the JWT of a delivery', () => {
  const [before, now, rsa] = [ecKey(), ecKey(), rsaKey()];
  let server: Server;
  let jwks: ReturnType<typeof createRemoteJWKSet>;
  beforeAll(async () => {
    const keys = [now, before, rsa].map((key) => publicKeyOf(parseSigningKey(key)));
    server = createServer((_, response) => void response.end(JSON.stringify({ keys })));
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    jwks = createRemoteJWKSet(new URL(`http://127.0.0.1:${(server.address() as AddressInfo).port}/`));
  });
  afterAll(() => void server.close());

  const verify = async (headers: Record<string, string>, audience = 'https://receiver.example:8443') =>
    jwtVerify(headers['baton-signature'] ?? '', jwks, { issuer: 'https://agents.example', audience });

  it.each([
    ['ES256', now],
    ['RS256', rsa],
  ])('is %s, and verifies with the published keys', async (alg, key) => {
    const { payload, protectedHeader } = await verify(await signerWith(key).headers(delivery, {}));
    expect(protectedHeader).toMatchObject({
      alg,
      typ: 'JWT',
      jku: 'https://agents.example/.well-known/jwks.json',
    });
    expect(payload).toEqual({
      iss: 'https://agents.example',
      aud: 'https://receiver.example:8443',
      sub: `${TASK}:mine:3`,
      taskId: TASK,
      jti: expect.any(String) as unknown,
      iat: Math.floor(delivery.at.getTime() / 1000),
      exp: Math.floor(delivery.at.getTime() / 1000) + 300,
      request_body_sha256: createHash('sha256').update(delivery.body).digest('hex'),
    });
  });

  it('verifies with the key before, while both are published, and not with any other', async () => {
    await verify(await signerWith(before).headers(delivery, {}));
    await expect(verify(await signerWith(ecKey()).headers(delivery, {}))).rejects.toThrow(
      'no applicable key',
    );
  });

  it('is of no use to another receiver, or later', async () => {
    const headers = await signerWith(now).headers(delivery, {});
    await expect(verify(headers, 'https://other.example')).rejects.toThrow('"aud"');
    const old = { ...delivery, at: new Date(Date.now() - 301_000) };
    await expect(verify(await signerWith(now).headers(old, {}))).rejects.toThrow('"exp"');
  });

  it('has another id for each attempt', async () => {
    const ids = [delivery, delivery].map(
      async (each) => (await verify(await signerWith(now).headers(each, {}))).payload.jti,
    );
    const [first, second] = await Promise.all(ids);
    expect(first).not.toBe(second);
  });

  it('is made with the key of cards if push notifications have none of their own', async () => {
    const kidOf = async (signer: DeliverySigner) =>
      (await verify(await signer.headers(delivery, {}))).protectedHeader.kid;
    expect(await kidOf(signerWith(undefined, before))).toBe(parseSigningKey(before).kid);
    expect(await kidOf(signerWith(now, before))).toBe(parseSigningKey(now).kid);
    expect(await signerWith().headers(delivery, {})).not.toHaveProperty('baton-signature');
  });

  it('is the bearer token where the caller asks for one and gives none', async () => {
    const headers = await signerWith(now).headers(delivery, { scheme: 'bearer' });
    expect(headers.authorization).toBe(`Bearer ${headers['baton-signature']}`);
    expect(await signerWith().headers(delivery, { scheme: 'bearer' })).not.toHaveProperty('authorization');
    expect(await signerWith(now).headers(delivery, {})).not.toHaveProperty('authorization');
  });
});

describe('the headers of Standard Webhooks', () => {
  const [secret, before] = [newSigningSecret(), newSigningSecret()];
  const headersOf = (signingSecrets: string[]) => signerWith().headers(delivery, { signingSecrets });

  it('verify with the library of the receiver', async () => {
    const headers = await headersOf([secret]);
    expect(new Webhook(secret).verify(delivery.body, headers)).toEqual({ statusUpdate: { taskId: 'ä' } });
    expect(() => new Webhook(before).verify(delivery.body, headers)).toThrow('No matching signature');
    expect(() => new Webhook(secret).verify('{}', headers)).toThrow('No matching signature');
    const other = { ...headers, 'webhook-id': deliveryId(TASK, 'mine', 4) };
    expect(() => new Webhook(secret).verify(delivery.body, other)).toThrow('No matching signature');
  });

  it('verify with the new secret and with the one before, while it is changed', async () => {
    const headers = await headersOf([secret, before]);
    for (const known of [secret, before]) new Webhook(known).verify(delivery.body, headers);
  });

  it('sign a body of bytes as they are', async () => {
    const body = Buffer.from(delivery.body);
    const headers = await signerWith().headers({ ...delivery, body }, { signingSecrets: [secret] });
    new Webhook(secret).verify(delivery.body, headers);
  });

  it('have no signature without a secret, but the id and the time', async () => {
    expect(await signerWith().headers(delivery, {})).toEqual({
      'webhook-id': delivery.id,
      'webhook-timestamp': String(Math.floor(delivery.at.getTime() / 1000)),
    });
  });
});

describe('what the caller gave', () => {
  it('is sent as it is', async () => {
    const secrets = { token: 'tok', scheme: 'Basic', credentials: 'dTpw' };
    expect(await signerWith().headers(delivery, secrets)).toMatchObject({
      'x-a2a-notification-token': 'tok',
      authorization: 'Basic dTpw',
    });
  });

  it('is never sent if it is a signing secret: it signs', async () => {
    const credentials = newSigningSecret();
    const headers = await signerWith(ecKey()).headers(delivery, { scheme: 'Bearer', credentials });
    new Webhook(credentials).verify(delivery.body, headers);
    expect(JSON.stringify(headers)).not.toContain(credentials.slice(6));
    expect(headers).not.toHaveProperty('authorization');
  });
});

describe('the id of a delivery', () => {
  it('can stand in a header, and has no full stop, whatever the caller named the config', () => {
    const id = deliveryId(TASK, 'a.b:c\r\nd é', 7);
    expect(id).toBe(`${TASK}:a%2Eb%3Ac%0D%0Ad%20%C3%A9:7`);
  });
});

describe('a signing secret', () => {
  it.each([
    'whsec_',
    'whsec_abc',
    'whsec_????',
    `whsec_${'A'.repeat(31)}`,
    `whsec_${'A'.repeat(90)}`,
    'A'.repeat(44),
  ])('%s is refused', (secret) =>
    expect(signingSecretProblem(secret)).toMatch(/^must be whsec_ and the base64 of 24 to 64/),
  );

  it.each([newSigningSecret(), `whsec_${'A'.repeat(32)}`])('%s is taken', (secret) =>
    expect(signingSecretProblem(secret)).toBeUndefined(),
  );
});
