import type { Agent, TaskPushNotificationConfig } from '@baton/a2a';
import { loadEnvironment } from '@baton/config';
import { type LimitsService, newSigningSecret } from '@baton/identity';
import { type EgressLists, NO_EGRESS_LISTS, Outbound } from '@baton/outbound';
import { createServer, type IncomingMessage, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Webhook } from 'standardwebhooks';
import { KEEPS_CONNECTIONS } from '../../../../test/support/server-options.js';
import { DeliverySigner } from './delivery-signer.js';
import { ReceiverCheck } from './receiver-check.js';

/** What the receiver answers to a body. */
type Answer = (body: string, request: IncomingMessage) => { status?: number; text: string };

let server: Server;
let url: string;
let answer: Answer;
let asked: { body: string; headers: IncomingMessage['headers'] }[];

beforeAll(async () => {
  server = createServer(KEEPS_CONNECTIONS, (request, response) => {
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const body = Buffer.concat(chunks).toString();
      asked.push({ body, headers: request.headers });
      const { status = 200, text } = answer(body, request);
      response.writeHead(status, { location: '/elsewhere' }).end(text);
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/events`;
});
beforeEach(() => {
  asked = [];
  answer = (body) => ({ text: (JSON.parse(body) as { challenge: string }).challenge });
});
afterAll(() => new Promise((resolve) => server.close(resolve)));

const NONE = { tenant: '', taskId: 't', id: 'c', token: '', authentication: undefined };
const agent = { slug: 'helper' } as Agent;

interface Settings {
  lists?: EgressLists;
  env?: Record<string, string>;
}

function checking({ lists = NO_EGRESS_LISTS, env = {} }: Settings) {
  const environment = loadEnvironment({ DATABASE_URL: 'postgres://localhost/none', ...env });
  const resolve = async (name: string) => {
    if (name === 'slow.example') throw Object.assign(new Error('later'), { code: 'EAI_AGAIN' });
    if (name === 'none.example') throw Object.assign(new Error('no'), { code: 'ENOTFOUND' });
    return [{ address: name === 'inside.example' ? '10.0.0.1' : '1.1.1.1', family: 4 }];
  };
  const outbound = new Outbound({ outboundAllow: ['127.0.0.1'] }, undefined, resolve);
  const limits = { egress: async () => lists } as unknown as LimitsService;
  return {
    outbound,
    check: new ReceiverCheck(outbound, limits, new DeliverySigner(environment), environment),
  };
}

/** What a check says of a config: undefined = nothing is wrong. */
async function refusalOf(
  config: Partial<TaskPushNotificationConfig>,
  settings: Settings = {},
): Promise<string | undefined> {
  const { outbound, check } = checking(settings);
  try {
    await check.checkConfig({ tenantId: 'a', agent }, { ...NONE, url, ...config }, 'config.', {
      scheme: 'scheme',
    });
    return undefined;
  } catch (error) {
    return (error as Error).message;
  } finally {
    await outbound.onApplicationShutdown();
  }
}

const CHARACTERS = Array.from({ length: 200 }, (_, i) =>
  String.fromCharCode(0x4e00 + ((i * 7919) % 20_000)),
).join('');
const auth = (scheme: string, credentials: string) => ({ authentication: { scheme, credentials } });

it.each([
  [{ url: 'https://receiver.example/x?y' }],
  // It may have an address later: deliveries look it up again.
  [{ url: 'https://slow.example' }],
  [auth('Bearer', 'abc')],
  [auth('Bearer', '')],
  [auth('', '')],
  [auth('X-Key', `whsec_${Buffer.alloc(32).toString('base64')}`)],
  [{ token: 'x'.repeat(4096) }],
])('takes %j', async (config) => {
  expect(await refusalOf(config)).toBeUndefined();
  expect(asked).toEqual([]);
});

it.each([
  [{ url: '' }, 'config.url: is required'],
  [{ url: 'nonsense' }, 'config.url: must be a URL'],
  [{ url: 'ftp://receiver.example' }, 'config.url: must be a URL'],
  [{ url: 'https://a:b@receiver.example' }, 'config.url: must not hold a user name'],
  [{ url: `https://x.example/${'x'.repeat(2048)}` }, 'config.url: must not be longer'],
  [{ url: `https://${'x'.repeat(250)}.example` }, 'config.url: must have a host name of at most 253'],
  // Each of these characters is several in the name that is looked up.
  [{ url: `https://${CHARACTERS}.example` }, 'config.url: must have a host name of at most 253'],
  // No soft hyphen is in the name that is looked up.
  [{ url: `https://${'\u00ad'.repeat(250)}x.example` }, 'config.url: must have a host name of at most 253'],
  [{ url: 'http://169.254.169.254/' }, 'config.url: "169.254.169.254" is not at a public address'],
  [{ url: 'http://[::1]/' }, 'config.url: "[::1]" is not at a public address'],
  [{ token: 'a\r\nx: y' }, 'config.token: must have visible ASCII'],
  [{ token: 'x'.repeat(4097) }, 'config.token: must not be longer'],
  [auth('Bearer x', 'abc'), 'config.authentication.scheme: must be the name'],
  [auth('Digest', 'abc'), 'config.authentication.scheme: "Digest" needs other'],
  [auth('', 'abc'), 'config.authentication.scheme: is required'],
  [auth('Bearer', 'a\nb'), 'config.authentication.credentials: must have'],
  [auth('Bearer', 'whsec_short'), 'config.authentication.credentials: must be whsec_'],
])('refuses %j', async (config, message) => {
  expect((await refusalOf(config))?.replace('"::1"', '"[::1]"')).toContain(message);
});

it('answers alike for a private name and for none', async () => {
  const [inside, none] = await Promise.all(
    ['inside', 'none'].map(async (name) =>
      (await refusalOf({ url: `https://${name}.example` }))!.replace(name, ''),
    ),
  );
  expect(inside).toBe(none);
});

it('keeps to the lists of the tenant', async () => {
  const lists = { allow: ['receiver.example'], deny: [] };
  expect(await refusalOf({ url: 'https://receiver.example' }, { lists })).toBeUndefined();
  expect(await refusalOf({ url: 'https://other.example' }, { lists })).toContain('egress_allow');
});

describe('the challenge', () => {
  const env = { PUSH_CHALLENGE: 'true' };

  it('is echoed, alone or in JSON, by a receiver that gets the proofs of a delivery', async () => {
    const config = { token: 'my-token', ...auth('Bearer', 'my-key') };
    expect(await refusalOf(config, { env })).toBeUndefined();
    answer = (body) => ({ text: body });
    expect(await refusalOf(config, { env })).toBeUndefined();
    expect(asked).toHaveLength(2);
    expect(asked[0]!.headers).toMatchObject({
      'x-a2a-notification-token': 'my-token',
      authorization: 'Bearer my-key',
    });
    expect(asked[0]!.body).not.toBe(asked[1]!.body);
  });

  it('names the webhook whose receiver is asked, and has its signature', async () => {
    const { outbound, check } = checking({ env });
    const secret = newSigningSecret();
    const of = { webhook_id: 'w' };
    try {
      await check.check({ tenantId: 'a', url, field: 'url', secrets: { signingSecrets: [secret] }, of });
      const [{ body, headers }] = asked as [(typeof asked)[0]];
      expect(JSON.parse(body)).toEqual({
        type: 'push.challenge',
        challenge: expect.any(String) as string,
        ...of,
      });
      expect(new Webhook(secret).verify(body, headers as Record<string, string>)).toMatchObject(of);
    } finally {
      await outbound.onApplicationShutdown();
    }
  });

  it.each<[Answer, string]>([
    [() => ({ text: 'ok' }), 'its answer is not the challenge'],
    [(body) => ({ status: 404, text: body }), 'status 404'],
    [(body) => ({ status: 307, text: body }), 'status 307'],
    [() => ({ text: 'x'.repeat(10_000) }), 'the receiver has not answered the challenge'],
  ])('refuses another answer: %#', async (other, message) => {
    answer = other;
    expect(await refusalOf({}, { env })).toContain(message);
    expect(asked).toHaveLength(1);
  });
});
