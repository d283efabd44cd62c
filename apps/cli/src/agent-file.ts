import { type AgentDefinition, parseAgentDefinition } from '@baton/a2a';
import { assertConfig } from '@baton/agents';
import { readFileSync } from 'node:fs';
import { parse } from 'yaml';
import { OperatorError } from './operator-error.js';

/** Throws OperatorError that begins with the file's path and names every wrong field. */
export function readDefinition(file: string): AgentDefinition {
  const { tenants, ...definition } = inFile(file, () => parseAgentDefinition(parse(readText(file))));
  if (tenants) {
    throw new OperatorError(
      `${file}: tenants: is for installed agents; this one is for the tenant of --tenant alone.`,
    );
  }
  return definition;
}

/** Throws OperatorError unless a runtime can run the definition from the catalog. */
export function assertRunnable(file: string, definition: AgentDefinition): void {
  // The catalog holds no code: see ExecutorRuntime.
  if (definition.runtime === 'executor') {
    throw new OperatorError(
      `${file}: runtime: an executor brings code, so it is not created here: put its folder into BATON_AGENTS_DIR of the workers.`,
    );
  }
  inFile(file, () => assertConfig(definition));
}

function readText(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    const reason =
      code === 'ENOENT' ? 'there is no such file' : `it can not be read (${code ?? 'unknown reason'})`;
    throw new Error(reason, { cause: error });
  }
}

/** Whatever goes wrong in `work` is said of the file, in one line. */
function inFile<T>(file: string, work: () => T): T {
  try {
    return work();
  } catch (error) {
    // A YAML error shows the line below its first sentence.
    const [reason = ''] = (error instanceof Error ? error.message : String(error)).split('\n');
    throw new OperatorError(`${file}: ${reason.replace(/[:.]$/, '')}.`, { cause: error });
  }
}
