/** The declaration of one limit of a tenant. */
export interface LimitRule {
  /** The unit, in a few words, as the command line and docs/reference/limits.md show it. */
  counts: string;
  /** Sentences for `.env.example`. */
  description: string;
  /** What happens over the limit, in Markdown, for docs/reference/limits.md. */
  exceeded: string;
  /** The value of tenants without their own; null = no limit. */
  default: number | null;
  min: number;
  max: number;
  /** Fractions are allowed. */
  fractions?: true;
  /** It cannot be lifted: there is no `none`. It has no variable in the environment. */
  required?: true;
  /** A database that an earlier release has made has no limit until the operator sets one. */
  newDatabasesOnly?: true;
}

/** The largest value. It is exact in JavaScript, in JSON and in Postgres. */
const MAX_LIMIT = 999_999_999_999_999;

/** The largest number of runs and tasks: an integer of Postgres. */
const MAX_COUNT = 2_147_483_647;

const RUN_FAILS = 'The run fails with the reason.';

/**
 * Every limit of a tenant. This table is the only place that declares a limit. Its type, its default, `LIMIT_*` in the
 * environment, the option of `baton tenants limits` and the tables of the docs derive from it. A tenant's own values
 * are one JSON object in the database, so a new limit needs no migration.
 */
export const LIMITS = {
  requestsPerSecond: {
    counts: 'requests per second',
    description: 'Maximum requests per second.',
    exceeded: '429, `Retry-After: 1`',
    default: 200,
    min: 1,
    max: 1_000_000,
  },
  runsAtOnce: {
    counts: 'concurrent runs; further ones wait',
    description: 'Maximum concurrent runs. Further runs wait.',
    exceeded: 'Further runs wait. Nothing is refused.',
    // Reserved slots and the shares of tenants keep a flood from the others, and waste no slots.
    default: null,
    min: 1,
    max: MAX_COUNT,
  },
  tasksWaiting: {
    counts: 'tasks that wait for a run',
    description: 'Maximum tasks that wait for a run.',
    exceeded: '429, `Retry-After: 1`',
    default: 10_000,
    min: 1,
    max: MAX_COUNT,
  },
  openStreams: {
    counts: 'open streams',
    description: 'Maximum open streams.',
    exceeded: '429, `Retry-After: 1`',
    default: 1_000,
    min: 1,
    max: MAX_LIMIT,
  },
  bodyBytes: {
    counts: 'bytes of a request body',
    description: 'Maximum size of a request body, in bytes. BODY_LIMIT_BYTES also applies.',
    exceeded: '413',
    default: null,
    min: 1,
    max: MAX_LIMIT,
  },
  storedBytes: {
    counts: 'bytes that the tenant keeps in the database',
    description: 'Maximum bytes of the tasks, agents, secrets and schedules that the tenant keeps.',
    exceeded: '429, `Retry-After: 60`',
    default: 10_737_418_240,
    min: 1,
    max: MAX_LIMIT,
  },
  agents: {
    counts: "agents of the tenant's own",
    description: "Maximum agents of the tenant's own.",
    exceeded: '429, `Retry-After: 60`',
    default: 1_000,
    min: 1,
    max: MAX_LIMIT,
  },
  secrets: {
    counts: 'secrets',
    description: 'Maximum secrets.',
    exceeded: '429, `Retry-After: 60`',
    default: 1_000,
    min: 1,
    max: MAX_LIMIT,
  },
  schedules: {
    counts: 'schedules',
    description: 'Maximum schedules.',
    exceeded: '429, `Retry-After: 60`',
    default: 1_000,
    min: 1,
    max: MAX_LIMIT,
  },
  webhooks: {
    counts: 'webhooks',
    description: 'Maximum webhooks. Each task has a record for each webhook that gets its events.',
    exceeded: '429, `Retry-After: 60`',
    default: 20,
    min: 1,
    max: 1_000,
  },
  tokens: {
    counts: 'tokens that are not revoked',
    description: 'Maximum tokens that are not revoked.',
    exceeded: '429, `Retry-After: 60`',
    default: 1_000,
    min: 1,
    max: MAX_LIMIT,
  },
  pushConfigs: {
    counts: 'push notification configs of one task',
    description: 'Maximum push notification configs of a task.',
    exceeded: '429, `Retry-After: 60`',
    default: 20,
    min: 1,
    max: 1_000,
  },
  eventBytes: {
    counts: 'bytes of one event of an agent',
    description:
      'Maximum size of one event of an agent as stored (JSON), in bytes. MAX_EVENT_BYTES also applies.',
    exceeded: RUN_FAILS,
    default: 8_388_608,
    min: 1,
    max: MAX_LIMIT,
  },
  eventsPerRun: {
    counts: 'events of one run',
    description: 'Maximum events of one attempt of a run.',
    exceeded: RUN_FAILS,
    default: 200_000,
    min: 1,
    max: MAX_LIMIT,
  },
  bytesPerRun: {
    counts: 'bytes of all events of one run',
    description: 'Maximum bytes of all events of one attempt of a run.',
    exceeded: RUN_FAILS,
    default: 4_294_967_296,
    min: 1,
    max: MAX_LIMIT,
  },
  eventsPerTask: {
    counts: 'events of one task',
    description: 'Maximum events of a task.',
    exceeded: RUN_FAILS,
    default: 1_000_000,
    min: 1,
    max: MAX_LIMIT,
  },
  bytesPerTask: {
    counts: 'bytes of all messages and events of one task',
    description: 'Maximum bytes of all messages and events of a task.',
    exceeded: RUN_FAILS,
    default: 17_179_869_184,
    min: 1,
    max: MAX_LIMIT,
  },
  tokensPerDay: {
    counts: 'model tokens per day (UTC)',
    description: 'Maximum model tokens per day (UTC), input and output.',
    exceeded: RUN_FAILS,
    default: 10_000_000,
    min: 1,
    max: MAX_LIMIT,
  },
  retentionDays: {
    counts: 'days that an ended task stays',
    description:
      'Days that an ended task stays. Fractions are allowed. Default: 90. A database that release 0.2.0 or an earlier one has ' +
      'made keeps ended tasks until this is set (docs/operating/retention.md).',
    exceeded: 'The task is deleted ([retention](../operating/retention.md)).',
    default: 90,
    newDatabasesOnly: true,
    min: 0.000001,
    max: 99_999,
    fractions: true,
  },
  guestShare: {
    counts: 'percent of other limits for guests',
    description:
      'Percent of requestsPerSecond, tasksWaiting, openStreams and storedBytes that guests may use, from 1 to 100.',
    exceeded: 'As for the other limit',
    default: 50,
    min: 1,
    max: 100,
  },
  guestRequestsPerSecond: {
    counts: 'requests per second of the guests of one address',
    description: 'Maximum requests per second of the guests of one address.',
    exceeded: '429, `Retry-After: 1`',
    default: 10,
    min: 1,
    max: 1_000_000,
  },
  guestMessagesPerDay: {
    counts: 'messages of the guests of one address in 24 hours',
    description: 'Maximum messages of the guests of one address in 24 hours.',
    exceeded: '429, `Retry-After`',
    default: 1_000,
    min: 1,
    max: MAX_LIMIT,
  },
  weight: {
    counts: 'share of the workers when tenants compete',
    description: 'Share of the workers when tenants compete, from 1 to 1000.',
    exceeded: 'None ([ADR 0005](../inside/adr/0005-fair-dispatch.md))',
    default: 1,
    min: 1,
    max: 1000,
    required: true,
  },
} as const satisfies Record<string, LimitRule>;

export type LimitName = keyof typeof LIMITS;

type LimitValue<Rule extends LimitRule> = Rule extends { required: true } ? number : number | null;

/** The limits in force for one tenant; null = no limit. */
export type TenantLimits = { [Name in LimitName]: LimitValue<(typeof LIMITS)[Name]> };

/** What the operator has set for a tenant. A limit that is absent has its default; null = no limit. */
export type LimitOverrides = Partial<TenantLimits>;

/** The names of all limits, in the order of the table. */
export const LIMIT_NAMES = Object.keys(LIMITS) as readonly LimitName[];

/** The declaration of a limit. */
export const limitRule = (name: LimitName): LimitRule => LIMITS[name];

/** The limits of tenants that neither the tenant nor the environment sets. */
export const DEFAULT_LIMITS = Object.fromEntries(
  LIMIT_NAMES.map((name) => [name, LIMITS[name].default]),
) as TenantLimits;

/** No limits, except the required ones. */
export const NO_LIMITS = Object.fromEntries(
  LIMIT_NAMES.map((name) => [name, limitRule(name).required ? LIMITS[name].default : null]),
) as TenantLimits;

/** The largest value that statements and processes take. Earlier releases accepted values above `max`. */
export const largestLimit = (name: LimitName): number => Math.max(LIMITS[name].max, MAX_COUNT);

/**
 * What the operator has set for a tenant, as it is stored. An invalid stored value, of an earlier release or written by hand, becomes the
 * nearest valid one: the limits of one tenant must not stop those of others.
 */
export function storedLimits(stored: unknown): LimitOverrides {
  if (typeof stored !== 'object' || stored === null) return {};
  const values = new Map<string, unknown>(Object.entries(stored));
  const limits: Record<string, number | null> = {};
  for (const name of LIMIT_NAMES) {
    const value = values.get(name);
    const { min, fractions, required } = limitRule(name);
    if (value === null && !required) limits[name] = null;
    if (typeof value !== 'number' || Number.isNaN(value)) continue;
    const near = Math.min(Math.max(value, min), fractions ? LIMITS[name].max : largestLimit(name));
    limits[name] = fractions ? near : Math.floor(near);
  }
  return limits;
}

/** Limits that guests share with the callers of the tenant. */
const SHARED_WITH_GUESTS = ['requestsPerSecond', 'tasksWaiting', 'openStreams', 'storedBytes'] as const;

/** The limits of a tenant for the guests of its public hosts: of those that they share, `guestShare` percent. */
export function guestLimits(limits: TenantLimits): TenantLimits {
  const shared: Partial<TenantLimits> = {};
  for (const name of SHARED_WITH_GUESTS) {
    const max = limits[name];
    if (max !== null) shared[name] = Math.max(1, Math.floor((max * (limits.guestShare ?? 100)) / 100));
  }
  return { ...limits, ...shared };
}
