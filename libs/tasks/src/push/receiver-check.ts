import { clock } from '@baton/telemetry';
import {
  type Agent,
  parseBoundedJson,
  ProtocolError,
  type PushFields,
  type TaskPushNotificationConfig,
} from '@baton/a2a';
import { Environment } from '@baton/config';
import { isSigningSecret, LimitsService, signingSecretProblem } from '@baton/identity';
import { failureReason, Outbound, OutboundRefused } from '@baton/outbound';
import { Injectable } from '@nestjs/common';
import { randomBytes } from 'node:crypto';
import { DeliverySigner, type ReceiverSecrets } from './delivery-signer.js';

/** Characters of a URL that servers and proxies take. */
const MAX_URL_LENGTH = 2048;
/** Maximum length of a name in the DNS. The host is in an index (`push-lease.ts`), whose entries must be short. */
const MAX_HOST_LENGTH = 253;
/** The host as the index has it, which may be longer than the name that is looked up. */
const WRITTEN_HOST = /^[^:/?#]+:\/\/([^/?#]*)/;
/** Maximum length of a token, and of credentials. */
const MAX_SECRET_LENGTH = 4096;
/** Maximum length of the name of a scheme, such as Bearer. */
const MAX_SCHEME_LENGTH = 64;
/** Text that a header may have (RFC 9110 §5.5), without spaces at its ends. */
const HEADER_TEXT = /^[\x21-\x7e](?:[\x20-\x7e]*[\x21-\x7e])?$/;
/** RFC 9110 §5.6.2. */
const SCHEME = /^[A-Za-z0-9!#$%&'*+.^_`|~-]+$/;
/** Schemes whose credentials depend on each request, or on a question of the receiver. */
const NOT_STATIC: ReadonlySet<string> = new Set([
  'digest',
  'dpop',
  'gnap',
  'hoba',
  'mutual',
  'negotiate',
  'ntlm',
  'oauth',
  'scram-sha-1',
  'scram-sha-256',
  'vapid',
]);

/** The caller waits for the check. */
const CHALLENGE_MS = 10_000;
/** A receiver echoes a short text. */
const CHALLENGE_BYTES = 4_096;

/** A receiver that a caller names. */
export interface NamedReceiver {
  tenantId: string;
  url: string;
  /** Field of the URL in the request. */
  field: string;
  /** Credentials of its deliveries. */
  secrets: ReceiverSecrets;
  /** The subject of the challenge: the agent or webhook whose events the receiver would get. */
  of: { agent: string } | { webhook_id: string };
  taskId?: string;
}

/** Checks a receiver before it is stored. Each delivery checks the address again. */
@Injectable()
export class ReceiverCheck {
  constructor(
    private readonly outbound: Outbound,
    private readonly limits: LimitsService,
    private readonly signer: DeliverySigner,
    private readonly environment: Environment,
  ) {}

  /**
   * Checks a push config: its receiver, and what is sent in headers.
   * @param at where the config is in the params, with a full stop at its end; empty = they are the config
   * @throws ProtocolError `invalid-params` that names the field
   */
  async checkConfig(
    { tenantId, agent }: { tenantId: string; agent: Agent },
    config: TaskPushNotificationConfig,
    at: string,
    { scheme }: Pick<PushFields, 'scheme'>,
  ): Promise<void> {
    const { url, token, authentication, taskId } = config;
    const field = `${at}url`;
    readUrl(url, field);
    assertSecrets(config, at, scheme);
    const secrets = {
      token: token || undefined,
      scheme: authentication?.scheme || undefined,
      credentials: authentication?.credentials || undefined,
    };
    await this.check({ tenantId, url, field, secrets, of: { agent: agent.slug }, taskId });
  }

  /**
   * Checks any receiver: its URL, whether the tenant may call its address, and whether it takes the challenge.
   * @throws ProtocolError `invalid-params` that names the field
   */
  async check(receiver: NamedReceiver): Promise<void> {
    const { tenantId, field } = receiver;
    const url = readUrl(receiver.url, field);
    const lists = await this.limits.egress(tenantId);
    try {
      await this.outbound.assertReachable(url, tenantId, lists);
    } catch (error) {
      if (!(error instanceof OutboundRefused)) throw error;
      throw ProtocolError.invalidParams(field, error.message);
    }
    if (this.environment.pushChallenge) await this.challenge(receiver);
  }

  /** Asks the receiver to echo a random text, so that a caller cannot have events sent to a server of others. */
  private async challenge({ tenantId, url, field, secrets, of, taskId }: NamedReceiver): Promise<void> {
    const challenge = randomBytes(24).toString('base64url');
    const body = JSON.stringify({ type: 'push.challenge', challenge, ...of });
    const about = taskId === undefined ? {} : { taskId };
    const delivery = { id: `challenge:${challenge}`, body, url, at: clock.date(), ...about };
    const headers = await this.signer.headers(delivery, secrets);
    const calls = this.outbound.forTenant(tenantId, () => this.limits.egress(tenantId));
    const fetch = calls.fetchWithin({ timeoutMs: CHALLENGE_MS, maxBytes: CHALLENGE_BYTES });
    let answer: string;
    try {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body,
        redirect: 'manual',
      });
      answer = await response.text();
      if (!response.ok) throw refused(field, `its answer has status ${response.status}`);
    } catch (error) {
      if (error instanceof ProtocolError) throw error;
      throw refused(field, failureReason(error) ?? 'the call failed');
    }
    if (!echoes(answer, challenge)) throw refused(field, 'its answer is not the challenge');
  }
}

const refused = (field: string, why: string): ProtocolError =>
  ProtocolError.invalidParams(
    field,
    `the receiver has not answered the challenge: ${why}; it must answer a POST of {"type": "push.challenge", "challenge"} ` +
      'with status 200 and the text of the challenge, alone or as the member "challenge" of a JSON object',
  );

function echoes(answer: string, challenge: string): boolean {
  if (answer.trim() === challenge) return true;
  // CHALLENGE_BYTES bounds it.
  return (parseBoundedJson(answer) as { challenge?: unknown } | null | undefined)?.challenge === challenge;
}

function readUrl(text: string, field: string): URL {
  if (text === '')
    throw ProtocolError.invalidParams(field, 'is required: send the https URL of your receiver');
  if (text.length > MAX_URL_LENGTH)
    throw ProtocolError.invalidParams(field, `must not be longer than ${MAX_URL_LENGTH} characters`);
  const url = URL.parse(text);
  if (!url || !/^https?:$/.test(url.protocol) || url.hostname === '')
    throw ProtocolError.invalidParams(field, 'must be a URL that begins with https:// or http://');
  const written = WRITTEN_HOST.exec(text)?.[1] ?? '';
  if (Math.max(url.hostname.length, written.length) > MAX_HOST_LENGTH)
    throw ProtocolError.invalidParams(
      field,
      `must have a host name of at most ${MAX_HOST_LENGTH} characters`,
    );
  if (url.username !== '' || url.password !== '')
    throw ProtocolError.invalidParams(
      field,
      'must not hold a user name or password: send credentials as authentication, with the scheme "Basic"',
    );
  return url;
}

function assertSecrets(
  { token, authentication }: TaskPushNotificationConfig,
  at: string,
  schemeName: string,
): void {
  assertHeaderText(token, `${at}token`);
  if (!authentication) return;
  const { scheme, credentials } = authentication;
  const [schemeField, credentialsField] = [
    `${at}authentication.${schemeName}`,
    `${at}authentication.credentials`,
  ];
  if (scheme !== '' && (scheme.length > MAX_SCHEME_LENGTH || !SCHEME.test(scheme)))
    throw ProtocolError.invalidParams(schemeField, 'must be the name of an HTTP scheme such as "Bearer"');
  if (NOT_STATIC.has(scheme.toLowerCase()))
    throw ProtocolError.invalidParams(
      schemeField,
      `"${scheme}" needs other credentials for each request: use "Bearer" or "Basic", or verify the signature`,
    );
  if (credentials !== '' && scheme === '')
    throw ProtocolError.invalidParams(
      schemeField,
      'is required where there are credentials, such as "Bearer"',
    );
  assertHeaderText(credentials, credentialsField);
  const problem = isSigningSecret(credentials) ? signingSecretProblem(credentials) : undefined;
  if (problem !== undefined) throw ProtocolError.invalidParams(credentialsField, problem);
}

/** A value for a header must not contain a line break. No error shows a secret. */
function assertHeaderText(text: string, field: string): void {
  if (text === '') return;
  if (text.length > MAX_SECRET_LENGTH)
    throw ProtocolError.invalidParams(field, `must not be longer than ${MAX_SECRET_LENGTH} characters`);
  if (!HEADER_TEXT.test(text))
    throw ProtocolError.invalidParams(
      field,
      'must have visible ASCII characters only, as it is sent in a header',
    );
}
