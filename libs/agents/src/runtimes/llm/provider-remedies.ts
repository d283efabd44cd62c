import type { OpenModel } from './providers.js';
import type { Complaint } from './wire/provider-complaint.js';

/** Fault, remedy, and whether a retry may help. */
interface Remedy {
  /** Goes on after the name of the provider. */
  problem: string;
  /** A sentence for the caller. */
  remedy: string;
  retryable: boolean;
  /** A shorter conversation may fit. */
  isTooLarge?: true;
}

interface Rule {
  status?: readonly number[];
  /** Matches the code, the type and the message of the complaint. */
  says?: RegExp;
  document?: Complaint['document'];
  problem: string;
  remedy: (model: OpenModel) => string;
  retryable?: true;
  isTooLarge?: true;
}

const CHECK_URL = (): string => 'Check baseUrl of the agent: most addresses end in /v1.';
const TRY_LATER = (): string => 'Try again later.';
const CHECK_CREDIT = ({ keyName }: OpenModel): string =>
  `Check the credit and the plan of the key "${keyName}".`;

/** The first rule that matches counts. Rules about special cases come before those about a status. */
const RULES: readonly Rule[] = [
  { document: 'page', problem: 'answered with a web page', remedy: CHECK_URL },
  {
    says: /unexpected endpoint|invalid url|cannot post|unknown (url|path|endpoint|request url)|page not found|no such (endpoint|route)/i,
    problem: 'has no such address',
    remedy: CHECK_URL,
  },
  {
    status: [200],
    problem: 'did not answer with a stream of events',
    remedy: () => 'Check baseUrl of the agent, and whether the address supports streaming.',
  },
  {
    says: /insufficient_quota|insufficient (balance|credit|funds)|credit balance is too low|billing_(not_active|hard_limit)/i,
    problem: 'has no credit left for this key',
    remedy: CHECK_CREDIT,
  },
  { status: [402], problem: 'has no credit left for this key', remedy: CHECK_CREDIT },
  { status: [401], problem: 'refused the key', remedy: ({ keyName }) => `Check the secret "${keyName}".` },
  {
    // Gemini.
    status: [400],
    says: /api_key_invalid|api key (not valid|expired)/i,
    problem: 'refused the key',
    remedy: ({ keyName }) => `Check the secret "${keyName}".`,
  },
  {
    status: [400, 403, 422],
    says: /moderation|flagged|content.?(policy|filter)|safety (system|filter)|usage polic/i,
    problem: 'refused the content of the request',
    remedy: () => 'Put the question differently.',
  },
  {
    status: [403],
    says: /api.?key|authentication|credential|token|permission|not authorized|unauthorized/i,
    problem: 'refused the key',
    remedy: ({ keyName }) => `Check the secret "${keyName}" and what it may do.`,
  },
  {
    status: [403],
    problem: 'refused the request',
    remedy: ({ keyName, name }) =>
      `Check what the key "${keyName}" may do, and whether it may use "${name}".`,
  },
  {
    status: [400, 404, 422, 500, 501],
    says: /(support|take|accept|enable)s? (for )?(tool|function)|tool (use|calling|choice).*not supported|--jinja/i,
    problem: 'does not support tools with this model',
    remedy: () => 'Choose another model, or remove tools and agents of the agent.',
  },
  {
    status: [400, 404],
    says: /data policy|guardrail|privacy/i,
    problem: 'has no endpoint that its privacy settings allow',
    remedy: () => 'Change the privacy settings at the provider.',
  },
  {
    status: [404],
    says: /model|not_found_error|deployment/i,
    problem: 'does not have the model',
    remedy: ({ name }) => `Check model of the agent ("${name}").`,
  },
  {
    status: [404, 405],
    problem: 'has no such model or address',
    remedy: ({ name }) => `Check model ("${name}") and baseUrl of the agent.`,
  },
  {
    status: [400, 413, 500],
    says: /context.?(length|window)|(prompt|input|request|conversation)\b.{0,40}(too (long|large)|exceed)|maximum context/i,
    problem: 'takes no request of this size',
    remedy: () => 'Lower memory of the agent, send less, or choose a model with a larger context.',
    isTooLarge: true,
  },
  {
    status: [413],
    problem: 'takes no request of this size',
    remedy: () => 'Send less, or lower memory of the agent.',
    isTooLarge: true,
  },
  {
    status: [429],
    problem: 'takes no more requests for now',
    remedy: ({ keyName }) => `Try again later, or raise the quota of the key "${keyName}".`,
    retryable: true,
  },
  { status: [529], problem: 'is overloaded', remedy: TRY_LATER, retryable: true },
  { status: [501], problem: 'does not support the request', remedy: CHECK_URL },
  {
    status: [500, 502, 503],
    says: /invalid_request|bad_?request_?error|invalid_argument|validation_error/i,
    problem: 'refused the request',
    remedy: ({ name }) => `Check the settings of the agent for "${name}".`,
  },
  { status: [408, 409], problem: 'did not complete the request', remedy: TRY_LATER, retryable: true },
];

/** Whether the page with this status may be that of a gateway before the right address: it is busy, down, or takes less. */
const isOfGateway = (status: number): boolean => status >= 500 || [408, 413, 429].includes(status);

/** The explanation of a provider's error. */
export function remedyOf(complaint: Complaint, model: OpenModel): Remedy {
  const { status, code = '', type = '', message = '' } = complaint;
  const document = isOfGateway(status) ? undefined : complaint.document;
  const text = `${code} ${type} ${message}`;
  const rule = RULES.find(
    (each) =>
      (each.status === undefined || each.status.includes(status)) &&
      (each.says === undefined || each.says.test(text)) &&
      (each.document === undefined || each.document === document),
  );
  if (rule) {
    const { problem, retryable = false, isTooLarge } = rule;
    return { problem, remedy: rule.remedy(model), retryable, ...(isTooLarge && { isTooLarge }) };
  }
  if (status >= 500) return { problem: 'failed', remedy: TRY_LATER(), retryable: true };
  return {
    problem: 'refused the request',
    remedy: `Check the settings of the agent for "${model.name}".`,
    retryable: false,
  };
}
