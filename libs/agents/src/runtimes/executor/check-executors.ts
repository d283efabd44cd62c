import { messageOf } from '@baton/telemetry';
import { AgentProcess, type ProcessOptions } from './agent-process.js';
import type { CodeFolder, LoadFault } from './protocol.js';

/**
 * Loads the module of each folder once to check it. A module may run any code while it loads, so a child process does
 * it. If a module ends the process, never returns or never finishes loading, that is its problem, and the next folders use a new
 * process.
 *
 * @returns one fault per folder; undefined if the folder is fine
 */
export async function checkExecutors(
  folders: readonly CodeFolder[],
  options: ProcessOptions,
): Promise<(LoadFault | undefined)[]> {
  const checker = new Checker(options);
  const faults: (LoadFault | undefined)[] = [];
  for (const folder of folders) faults.push(await checker.check(folder));
  await checker.close();
  return faults;
}

class Checker {
  private process: AgentProcess | undefined;

  constructor(private readonly options: ProcessOptions) {}

  async check(folder: CodeFolder): Promise<LoadFault | undefined> {
    // An earlier module may have ended a used process. Only a failure in a new process is this module's fault.
    const isNew = this.process === undefined;
    const process = (this.process ??= new AgentProcess(this.options));
    try {
      const error = await process.load(folder);
      return error && (error.fault ?? { file: '', reason: error.message });
    } catch (error) {
      this.process = undefined;
      const reason = messageOf(error);
      const fault = { file: folder.module ?? '', reason: `could not be loaded: ${reason}` };
      return isNew || process.isLoadTooLong ? fault : this.check(folder);
    }
  }

  async close(): Promise<void> {
    this.process?.kill('All agents are checked');
    await this.process?.ended;
  }
}
