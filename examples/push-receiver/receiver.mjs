// Receives push notifications of Baton and believes only what it can verify. Run it:
//
//   npm install jose standardwebhooks
//   BATON=http://localhost:8080 PORT=9000 TOKEN=my-token node receiver.mjs
//
// Then make a push config with the URL http://127.0.0.1:9000/ and the token "my-token". docs/calling/push.md explains the
// headers. The environment:
//
//   BATON    origin of the server whose notifications are taken (its PUBLIC_URL)
//   ORIGIN   origin of this receiver, as its URL in the push config has it; default http://127.0.0.1:PORT
//   TOKEN    the `token` of the push config, if it has one
//   SECRETS  the secrets of a webhook (whsec_…), separated by spaces: two while you change it

import { createHash, timingSafeEqual } from 'node:crypto';
import { createServer } from 'node:http';
import { pathToFileURL } from 'node:url';
import { createRemoteJWKSet, jwtVerify } from 'jose';
import { Webhook } from 'standardwebhooks';

const MAX_BYTES = 4 * 1024 * 1024;

/**
 * @param {object} options
 * @param {string} options.baton origin of the server whose notifications are taken
 * @param {string} options.origin origin of this receiver
 * @param {string} [options.token] of the push config
 * @param {string[]} [options.secrets] `whsec_…`
 * @param {(event: object, id: string) => void | Promise<void>} options.onEvent gets each event once. If it rejects, the
 * sender tries again.
 */
export function createReceiver({ baton, origin, token, secrets = [], onEvent }) {
  // Fetched when a signature is verified, kept, and fetched again when it has a key that is not there yet.
  const keys = createRemoteJWKSet(new URL('/.well-known/jwks.json', baton));
  const seen = new Sequences();
  return createServer((request, response) => {
    const answer = (status, text = '') => response.writeHead(status).end(text);
    receive(request).then(
      () => answer(204),
      (error) => (error instanceof Refused ? answer(401, `${error.message}\n`) : answer(500, 'try again\n')),
    );
  });

  async function receive(request) {
    const body = await read(request);
    await verify(request.headers, body);
    const id = request.headers['webhook-id'];
    // Deliveries of a config are one after another. A repeated one comes before any later one.
    await seen.once(id, () => onEvent(JSON.parse(body.toString('utf8')), id));
  }

  async function verify(headers, body) {
    if (token !== undefined && !isEqual(headers['x-a2a-notification-token'] ?? '', token)) {
      throw new Refused('the token is not mine');
    }
    const { payload } = await jwtVerify(headers['baton-signature'] ?? '', keys, {
      algorithms: ['ES256', 'RS256'],
      issuer: baton,
      audience: origin,
      subject: headers['webhook-id'],
      requiredClaims: ['sub', 'jti', 'iat', 'exp'],
    }).catch((error) => {
      // The server that has the keys may be away for a moment: that does not make the signature wrong.
      if (error.code?.startsWith('ERR_JW')) throw new Refused(`the JWT does not verify: ${error.message}`);
      throw error;
    });
    const hash = createHash('sha256').update(body).digest('hex');
    if (payload.request_body_sha256 !== hash) throw new Refused('the JWT is for another body');
    if (secrets.length > 0 && !secrets.some((secret) => isSignedWith(secret, headers, body))) {
      throw new Refused('no signature of Standard Webhooks verifies');
    }
  }
}

/** Answered with 401. The sender is not verified yet, so its operator reads no secret in the message. */
class Refused extends Error {}

function isSignedWith(secret, headers, body) {
  try {
    new Webhook(secret).verify(body, headers);
    return true;
  } catch {
    return false;
  }
}

function isEqual(a, b) {
  const hash = (text) => createHash('sha256').update(text).digest();
  return timingSafeEqual(hash(a), hash(b));
}

async function read(request) {
  const chunks = [];
  let bytes = 0;
  for await (const chunk of request) {
    bytes += chunk.length;
    if (bytes > MAX_BYTES) throw new Refused('the body is too long');
    chunks.push(chunk);
  }
  return Buffer.concat(chunks);
}

/**
 * How far each config has been received. `webhook-id` is `<task>:<config>:<sequence>`, and sequences only grow. A receiver
 * that must survive a restart keeps the last one in its database, in the transaction that acts on the event.
 */
class Sequences {
  #last = new Map();
  #turn = Promise.resolve();

  /** One after another: the sender may repeat a delivery while this receiver still works on it. */
  once(id, act) {
    const done = this.#turn.then(async () => {
      const at = id.lastIndexOf(':');
      const [config, sequence] = [id.slice(0, at), Number(id.slice(at + 1))];
      if (sequence <= (this.#last.get(config) ?? 0)) return;
      await act();
      this.#last.set(config, sequence);
    });
    this.#turn = done.catch(() => {});
    return done;
  }
}

if (process.argv[1] && import.meta.url === pathToFileURL(process.argv[1]).href) {
  const { BATON = 'http://localhost:8080', PORT = '9000', TOKEN, SECRETS, ORIGIN } = process.env;
  const receiver = createReceiver({
    baton: BATON,
    origin: ORIGIN ?? `http://127.0.0.1:${PORT}`,
    token: TOKEN,
    secrets: SECRETS?.split(' ') ?? [],
    onEvent: (event, id) => console.log(id, JSON.stringify(event)),
  });
  receiver.listen(Number(PORT), '127.0.0.1', () => console.log(`Receiving on ${receiver.address().port}`));
}
