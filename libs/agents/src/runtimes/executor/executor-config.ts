import { type Environment, isBatonSecret } from '@baton/config';
import type { Logger } from '@baton/telemetry';
import { z } from 'zod';
import { isAbsolute, normalize, join } from 'node:path';
import { durationText } from '../../setting-fields.js';
import type { PoolOptions } from './agent-pool.js';
import type { ProcessOptions } from './agent-process.js';
import { agentSandbox } from './agent-sandbox.js';
import { printToAuthor } from './author-terminal.js';

const isInside = (path: string): boolean => !isAbsolute(path) && !normalize(path).startsWith('..');

/** The password of Postgres, and the credentials of `baton master-key vault`. */
const LEADS_TO_SECRETS = /^(PGPASSWORD|PGPASSFILE|(VAULT|BAO)_TOKEN)$/;

const variable = z
  .string()
  .regex(/^[A-Za-z_][A-Za-z0-9_]{0,99}$/, 'must be the name of an environment variable')
  .refine((name) => !isBatonSecret(name), 'is a secret of Baton, which agents do not get')
  .refine((name) => !LEADS_TO_SECRETS.test(name), 'leads to secrets of Baton, which agents do not get');

/** The settings of an executor agent. Defaults come from the environment (`EXECUTOR_…`). */
export const executorConfig = z.strictObject({
  /** Path of the module inside the agent's folder. */
  module: z.string().min(1).refine(isInside, 'must be a path inside the folder of the agent').optional(),
  /** Names of further variables of the worker's environment that the agent's process receives. */
  env: z.array(variable).max(100).optional(),
  /** Names of secrets of the calling tenant that the agent may read, with `secret()` of its context. */
  secrets: z
    .array(z.string().regex(/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/, 'must be the name of a secret'))
    .max(100)
    .optional(),
  /** JavaScript heap size of a process, in MiB. */
  memoryMb: z.int().min(32).max(65_536).optional(),
  /** Maximum time without a response of the process, for example in an endless loop. Read as milliseconds. */
  stall: durationText.optional(),
  /** Number of processes per worker that share the agent's turns. */
  processes: z.int().min(1).max(64).optional(),
  /** The turns that share a process: all tenants (`shared`), or the turns of one tenant (`tenant`). Default: shared. */
  isolation: z.enum(['shared', 'tenant']).optional(),
});

/** Variables that every process receives: program paths, locale, time zone, certificates and proxies. */
const PASSED =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LC_[A-Z]+|TZ|TMPDIR|TMP|TEMP|NODE_ENV|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|(HTTPS?|NO|ALL)_PROXY)$/i;

// The JSON of an event is longer than its content because of Base64 and escapes. This bound is rough: the worker
// measures the exact size when it stores the event.
const JSON_FACTOR = 6;
const ENVELOPE_BYTES = 64 * 1024;

/** No slug of an agent. */
const CHECKS = '.checks';

/** A working week. */
const DEV_IDLE_MS = 7 * 86_400_000;

/**
 * Options for an agent's processes. Values of its `agent.yaml` override those of the environment.
 * @param agent.folder of its code; unset = in BATON_AGENTS_DIR
 * @param isolated the tenant that the processes serve, if they serve only one
 * @throws Error if the folder for temporary files of the agent cannot be made
 */
export function processOptions(
  { slug, config, folder: given }: { slug: string; config: unknown; folder?: string | undefined },
  environment: Environment,
  logger: Logger,
  isolated?: PoolOptions['isolated'],
): PoolOptions {
  const { module, env = [], memoryMb, stall, processes } = executorConfig.parse(config);
  const {
    agentsDir = '',
    executorMemoryMb,
    executorStallMs,
    executorLoadMs,
    executorProcesses,
    executorIdleMs,
  } = environment;
  const folder = given ?? join(agentsDir, slug);
  const passed = passedEnvironment(env);
  const sandbox = agentSandbox(folder, join(slug || CHECKS, isolated?.tenantId ?? ''), passed, environment);
  return {
    agent: slug,
    folder,
    module,
    env: { ...passed, ...sandbox?.env },
    files: sandbox?.files,
    isolated,
    onTurnEnd: isolated && (() => isolated.slots.onTurnEnd()),
    ...(environment.devMode && { onLine: (text: string) => printToAuthor(`${slug}: ${text}`) }),
    memoryMb: memoryMb ?? executorMemoryMb,
    stallMs: stall ?? executorStallMs,
    loadMs: executorLoadMs,
    maxProcesses: processes ?? executorProcesses,
    // The code of an idle process may be the last that could be loaded.
    idleMs: environment.devMode ? DEV_IDLE_MS : executorIdleMs,
    maxEventBytes: environment.maxEventBytes * JSON_FACTOR + ENVELOPE_BYTES,
    logger,
  };
}

/** Options for a process that loads the modules of all agents to check them. */
export function checkOptions(environment: Environment, logger: Logger): ProcessOptions {
  return processOptions({ slug: '', config: {} }, environment, logger);
}

/** The part of the worker's environment that an agent sees. The rest holds the platform's keys. */
export function passedEnvironment(names: readonly string[]): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && (PASSED.test(name) || names.includes(name))) passed[name] = value;
  }
  return passed;
}
