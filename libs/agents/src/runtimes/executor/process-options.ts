import type { Environment } from '@baton/config';
import type { Logger } from '@baton/telemetry';
import { join } from 'node:path';
import type { PoolOptions } from './agent-pool.js';
import type { ProcessOptions } from './agent-process.js';
import { executorConfig } from './executor-config.js';

/** Variables that every process gets: where programs and time zones are, and how to reach the outside. */
const PASSED =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LC_[A-Z]+|TZ|TMPDIR|TMP|TEMP|NODE_ENV|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|(HTTPS?|NO|ALL)_PROXY)$/i;

/** JSON of an event is longer than what it says: Base64, escapes. What is in between is measured later. */
const JSON_FACTOR = 6;
const ENVELOPE_BYTES = 64 * 1024;

/** How an agent's processes are run: what its `agent.yaml` says, and for the rest what the environment says. */
export function processOptions(
  { slug, config }: { slug: string; config: unknown },
  environment: Environment,
  logger: Logger,
): PoolOptions {
  const { module, env = [], memoryMb, stall, processes } = executorConfig.parse(config);
  const {
    agentsDir = '',
    executorMemoryMb,
    executorStallMs,
    executorProcesses,
    executorIdleMs,
  } = environment;
  return {
    agent: slug,
    folder: join(agentsDir, slug),
    module,
    env: passedEnvironment(env),
    memoryMb: memoryMb ?? executorMemoryMb,
    stallMs: stall ?? executorStallMs,
    maxProcesses: processes ?? executorProcesses,
    idleMs: executorIdleMs,
    maxEventBytes: environment.maxEventBytes * JSON_FACTOR + ENVELOPE_BYTES,
    logger,
  };
}

/** How a process is run in which modules are only loaded. */
export function checkOptions(environment: Environment, logger: Logger): ProcessOptions {
  return processOptions({ slug: '', config: {} }, environment, logger);
}

/** Of the worker's environment, which holds the platform's keys, an agent sees only this. */
function passedEnvironment(names: readonly string[]): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && (PASSED.test(name) || names.includes(name))) passed[name] = value;
  }
  return passed;
}
