import { messageOf } from '@baton/telemetry';
import { isDeepStrictEqual } from 'node:util';
import { relative, sep } from 'node:path';
import { type InstalledAgent, type LoadFailure, failureOf, readAgent } from './installed-agents.js';
import { isSourceFile } from './agent-code.js';
import type { FolderPoll } from './folder-poll.js';
import type { AgentPools } from './runtimes/executor/agent-pools.js';

/** The parts of the worker that a watch needs. */
interface AgentWatchOptions {
  pools: Pick<AgentPools, 'reload'>;
  /**
   * Keeps the code of an agent, if it pins its tasks.
   * @returns the agent with the hash of the code that is kept
   */
  keep: (agent: InstalledAgent) => Promise<InstalledAgent>;
  /** Makes the definition known to every process. */
  install: (agent: InstalledAgent) => Promise<void>;
  /** Prints a line for the author. */
  report: (level: 'info' | 'error', text: string) => void;
  /** Prints why an agent could not be loaded. */
  reportFailure: (failure: LoadFailure) => void;
  /** Replaces the list of agents that could not be loaded. */
  storeFailures: (failures: readonly LoadFailure[]) => Promise<void>;
}

/** An editor may write a file in several steps. */
const WRITTEN = { stabilityThreshold: 100, pollInterval: 25 };

/** Reports the changes. */
interface ChangeSource {
  /** An author changes the files: saving a file once more loads it once more. Otherwise an operator does. */
  readonly isForAuthors: boolean;
  close(): void | Promise<void>;
}

/** The agents that were installed when the worker started, and why others could not be. */
interface AgentsAtStart {
  agents: readonly InstalledAgent[];
  failures: readonly LoadFailure[];
}

/**
 * Loads an agent of `BATON_AGENTS_DIR` again when a file of its folder changes. Running turns end with the old code. An agent that
 * cannot be loaded continues with the old code too, and file, line and reason are printed.
 */
export class AgentWatch {
  private readonly known = new Map<string, InstalledAgent>();
  /** Agents that have changed since their last reload began. */
  private readonly changed = new Set<string>();
  /** Aborts the reload that is running, by agent. */
  private readonly reloading = new Map<string, AbortController>();
  private readonly failures = new Map<string, readonly LoadFailure[]>();

  private constructor(
    private readonly directory: string,
    private readonly source: ChangeSource,
    { agents, failures }: AgentsAtStart,
    private readonly options: AgentWatchOptions,
  ) {
    for (const agent of agents) this.known.set(agent.slug, agent);
    for (const failure of failures) {
      const slug = failure.slug ?? '';
      this.failures.set(slug, [...(this.failures.get(slug) ?? []), failure]);
    }
  }

  /**
   * For production: an operator may change files below a running worker.
   * @param directory absolute path of `BATON_AGENTS_DIR`
   * @param poll has looked at the folders before the agents were loaded
   */
  static poll(
    directory: string,
    poll: FolderPoll,
    atStart: AgentsAtStart,
    options: AgentWatchOptions,
  ): AgentWatch {
    const watch = new AgentWatch(directory, poll, atStart, options);
    poll.start((slug) => watch.failures.has(slug) || !watch.runsFilesOf(slug), {
      onChange: (slug) => watch.onChange(slug),
      onError: (error) => watch.onError(error),
    });
    return watch;
  }

  /**
   * For development: it notices changes at once.
   * @param directory absolute path of `BATON_AGENTS_DIR`
   * @param atStart each installed agent gets a process now, which keeps this code
   * @returns the watch, when it notices changes
   */
  static async start(
    directory: string,
    atStart: AgentsAtStart,
    options: AgentWatchOptions,
  ): Promise<AgentWatch> {
    // Not needed in production.
    const { watch } = await import('chokidar');
    const watcher = watch(directory, {
      ignored: (path, stats) => isIgnored(relative(directory, path), stats?.isFile() ?? false),
      ignoreInitial: true,
      awaitWriteFinish: WRITTEN,
    });
    const ready = new Promise<void>((resolve) => watcher.once('ready', resolve));
    const source = { isForAuthors: true, close: () => watcher.close() };
    const agentWatch = new AgentWatch(directory, source, atStart, options);
    watcher.on('all', (_, path) => {
      const [slug = '', file] = relative(directory, path).split(sep);
      if (file !== undefined) agentWatch.onChange(slug);
    });
    watcher.on('error', (error) => agentWatch.onError(error));
    for (const agent of atStart.agents) {
      const fault = await options.pools.reload(agent, new AbortController().signal);
      if (fault) options.reportFailure(failureOf(directory, agent.slug, agent.tenants, fault));
    }
    await ready;
    return agentWatch;
  }

  /** Whether processes of an agent load the files that may change, and not a copy of them. */
  private runsFilesOf(slug: string): boolean {
    const known = this.known.get(slug);
    return known !== undefined && known.definition.versions !== 'pinned';
  }

  async close(): Promise<void> {
    await this.source.close();
  }

  private onChange(slug: string): void {
    this.changed.add(slug);
    const underWay = this.reloading.get(slug);
    // The module before this change may never finish loading.
    if (underWay) underWay.abort();
    else void this.reloadUntilDone(slug);
  }

  /** A file that changes during a reload needs another one. */
  private async reloadUntilDone(slug: string): Promise<void> {
    while (this.changed.delete(slug)) {
      const abort = new AbortController();
      this.reloading.set(slug, abort);
      await this.reload(slug, abort.signal).catch((error: unknown) => this.onError(error));
    }
    this.reloading.delete(slug);
  }

  private async reload(slug: string, signal: AbortSignal): Promise<void> {
    const read = await readAgent(this.directory, slug);
    if (Array.isArray(read)) return this.onFailures(slug, read);
    // Before a task can begin with it.
    const found = await this.options.keep(read);
    const known = this.known.get(slug);
    const isSame = isDeepStrictEqual(found, known);
    if (isSame && !this.source.isForAuthors && !this.failures.has(slug)) return;
    const fault = await this.options.pools.reload(found, signal);
    if (signal.aborted) return;
    if (fault) return this.onFailures(slug, [failureOf(this.directory, slug, found.tenants, fault)]);
    this.known.set(slug, found);
    if (!isSame) await this.options.install(found);
    if (this.failures.delete(slug)) await this.storeFailures();
    this.options.report('info', `Agent ${slug} is loaded again. New turns run the new code.`);
  }

  private async onFailures(slug: string, failures: readonly LoadFailure[]): Promise<void> {
    for (const failure of failures) this.options.reportFailure(failure);
    if (this.known.has(slug)) {
      const exception =
        !this.source.isForAuthors && this.runsFilesOf(slug)
          ? ' Processes that start now load the changed files.'
          : '';
      this.options.report('info', `Agent ${slug} keeps the code before this change.${exception}`);
    }
    this.failures.set(slug, failures);
    await this.storeFailures();
  }

  private storeFailures(): Promise<void> {
    return this.options.storeFailures([...this.failures.values()].flat());
  }

  private onError(error: unknown): void {
    const reason = messageOf(error);
    this.options.report('error', `A change of an agent could not be loaded: ${reason}`);
  }
}

/** Packages, hidden files, tests, and files without source code: an agent's working folder is its own folder. */
function isIgnored(path: string, isFile: boolean): boolean {
  if (path === '') return false;
  if (path.split(sep).some((name) => name === 'node_modules' || name.startsWith('.'))) return true;
  return isFile && !isSourceFile(path);
}
