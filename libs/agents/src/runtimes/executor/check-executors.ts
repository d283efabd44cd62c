import { AgentProcess, type ProcessOptions } from './agent-process.js';

/** A folder with an executor. */
export interface ExecutorFolder {
  folder: string;
  module: string | undefined;
}

/**
 * Load the module of each folder once, to see that it can run: in a process beside, because a module may do anything
 * while it is loaded. One that ends the process, or does not come to an end, is found out; the rest goes on in a new
 * process.
 *
 * @returns for each folder what is wrong with it, if anything
 */
export async function checkExecutors(
  folders: readonly ExecutorFolder[],
  options: ProcessOptions,
): Promise<(string | undefined)[]> {
  const checker = new Checker(options);
  const problems: (string | undefined)[] = [];
  for (const folder of folders) problems.push(await checker.check(folder));
  await checker.close();
  return problems;
}

class Checker {
  private process: AgentProcess | undefined;

  constructor(private readonly options: ProcessOptions) {}

  async check(folder: ExecutorFolder): Promise<string | undefined> {
    // What has been loaded before may have ended the process: only in a new one it is known whose fault it is.
    const isNew = this.process === undefined;
    this.process ??= new AgentProcess(this.options);
    try {
      return (await this.process.load(folder.folder, folder.module))?.message;
    } catch (error) {
      this.process = undefined;
      const reason = error instanceof Error ? error.message : String(error);
      return isNew ? `${folder.folder}: could not be loaded: ${reason}` : this.check(folder);
    }
  }

  async close(): Promise<void> {
    this.process?.kill('All agents are checked');
    await this.process?.ended;
  }
}
