import type { AgentDefinition } from '@baton/a2a';
import type { Environment } from '@baton/config';
import type { Logger } from '@baton/telemetry';
import { z } from 'zod';
import { isAbsolute, normalize, join } from 'node:path';
import { type CodeSettings, processFields } from '../../process-settings.js';
import type { PoolOptions } from './agent-pool.js';
import type { ProcessOptions } from './agent-process.js';
import { llmConfigSchema } from '../llm/llm-config.js';
import { agentSandbox } from './agent-sandbox.js';
import { printToAuthor } from './author-terminal.js';
import type { CodeFolder } from './protocol.js';

const isInside = (path: string): boolean => !isAbsolute(path) && !normalize(path).startsWith('..');

/** The settings of an executor agent. Defaults come from the environment (`EXECUTOR_…`). */
export const executorConfig = z.strictObject({
  /** Path of the module inside the agent's folder. */
  module: z.string().min(1).refine(isInside, 'must be a path inside the folder of the agent').optional(),
  ...processFields,
});

/**
 * How the code of an installed agent is started: its module, or the functions in `tools/` of an llm agent.
 * @throws ZodError for settings that are not valid
 */
export function codeSettings({
  runtime,
  config,
}: Pick<AgentDefinition, 'runtime' | 'config'>): CodeSettings & Pick<CodeFolder, 'module' | 'kind'> {
  return runtime === 'llm'
    ? { ...llmConfigSchema.parse(config).functions, kind: 'tools' }
    : executorConfig.parse(config);
}

/** What a turn needs of these settings. They were checked when the agent was read, and are not parsed again for each turn. */
export const turnSettings = ({
  runtime,
  config,
}: Pick<AgentDefinition, 'runtime' | 'config'>): Pick<CodeSettings, 'isolation' | 'secrets'> =>
  runtime === 'llm' ? ((config as { functions?: object }).functions ?? {}) : config;

/** Variables that every process receives: program paths, locale, time zone, certificates and proxies. */
const PASSED =
  /^(PATH|HOME|USER|LOGNAME|SHELL|TERM|LANG|LC_[A-Z]+|TZ|TMPDIR|TMP|TEMP|NODE_ENV|NODE_EXTRA_CA_CERTS|SSL_CERT_(FILE|DIR)|(HTTPS?|NO|ALL)_PROXY)$/i;

// The JSON of an event is longer than its content because of Base64 and escapes. This bound is rough: the worker
// measures the exact size when it stores the event.
const JSON_FACTOR = 6;
/** Names, ids and metadata of an event. */
const ENVELOPE_BYTES = 64 * 1024;

/** No slug of an agent. */
const CHECKS = '.checks';

/** A working week. */
const DEV_IDLE_MS = 7 * 86_400_000;

/** An agent whose processes are to start. */
interface AgentToStart {
  slug: string;
  definition: Pick<AgentDefinition, 'runtime' | 'config'>;
  /** Folder of its code; unset = in BATON_AGENTS_DIR. */
  folder?: string | undefined;
}

/**
 * Options for an agent's processes. Values of its `agent.yaml` override those of the environment.
 * @param isolated the tenant that the processes serve, if they serve only one
 * @throws Error if the folder for temporary files of the agent cannot be made
 */
export function processOptions(
  { slug, definition, folder: given }: AgentToStart,
  environment: Environment,
  logger: Logger,
  isolated?: PoolOptions['isolated'],
): PoolOptions {
  const { module, kind, env = [], memoryMb, stall, processes } = codeSettings(definition);
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
    code: { folder, module, kind },
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
  return processOptions({ slug: '', definition: { runtime: 'executor', config: {} } }, environment, logger);
}

/** The part of the worker's environment that an agent gets. The rest holds the platform's keys. */
export function passedEnvironment(names: readonly string[]): Record<string, string> {
  const passed: Record<string, string> = {};
  for (const [name, value] of Object.entries(process.env)) {
    if (value !== undefined && (PASSED.test(name) || names.includes(name))) passed[name] = value;
  }
  return passed;
}
