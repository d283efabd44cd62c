import { messageOf } from '@baton/telemetry';
import type { FSWatcher } from 'chokidar';
import { isDeepStrictEqual } from 'node:util';
import { relative, sep } from 'node:path';
import { type InstalledAgent, type LoadFailure, failureOf, readAgent } from './installed-agents.js';
import { isSourceFile } from './agent-code.js';
import type { AgentPools } from './runtimes/executor/agent-pools.js';

/** The parts of the worker that a watch needs. */
interface AgentWatchOptions {
  pools: Pick<AgentPools, 'reload'>;
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

/**
 * For development: loads an agent of `BATON_AGENTS_DIR` again when a file of its folder changes. Turns in hand end with the
 * old code. An agent that cannot be loaded goes on with the old code too, and file, line and reason are printed.
 */
export class AgentWatch {
  private readonly known = new Map<string, InstalledAgent>();
  /** Agents that have changed since their last reload began. */
  private readonly changed = new Set<string>();
  /** What ends the reload that is under way. */
  private readonly reloading = new Map<string, AbortController>();
  private readonly failures = new Map<string, readonly LoadFailure[]>();

  private constructor(
    private readonly directory: string,
    private readonly watcher: FSWatcher,
    private readonly options: AgentWatchOptions,
  ) {
    watcher.on('all', (_, path) => this.onChange(path));
    watcher.on('error', (error) => this.onError(error));
  }

  /**
   * @param directory absolute path of `BATON_AGENTS_DIR`
   * @param atStart the agents that were installed, each of which gets a process now, which keeps this code; and the others
   * @returns the watch, when it notices changes
   */
  static async start(
    directory: string,
    atStart: { agents: readonly InstalledAgent[]; failures: readonly LoadFailure[] },
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
    const agentWatch = new AgentWatch(directory, watcher, options);
    for (const agent of atStart.agents) {
      agentWatch.known.set(agent.slug, agent);
      const fault = await options.pools.reload(agent, new AbortController().signal);
      if (fault) options.reportFailure(failureOf(directory, agent.slug, agent.tenants, fault));
    }
    for (const failure of atStart.failures) {
      const slug = failure.slug ?? '';
      agentWatch.failures.set(slug, [...(agentWatch.failures.get(slug) ?? []), failure]);
    }
    await ready;
    return agentWatch;
  }

  close(): Promise<void> {
    return this.watcher.close();
  }

  private onChange(path: string): void {
    const [slug = '', file] = relative(this.directory, path).split(sep);
    if (file === undefined) return;
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
    const found = await readAgent(this.directory, slug);
    if (Array.isArray(found)) return this.onFailures(slug, found);
    const fault = await this.options.pools.reload(found, signal);
    if (signal.aborted) return;
    if (fault) return this.onFailures(slug, [failureOf(this.directory, slug, found.tenants, fault)]);
    const known = this.known.get(slug);
    this.known.set(slug, found);
    if (!isDeepStrictEqual(found, known)) await this.options.install(found);
    if (this.failures.delete(slug)) await this.storeFailures();
    this.options.report('info', `Agent ${slug} is loaded again. New turns run the new code.`);
  }

  private async onFailures(slug: string, failures: readonly LoadFailure[]): Promise<void> {
    for (const failure of failures) this.options.reportFailure(failure);
    if (this.known.has(slug))
      this.options.report('info', `Agent ${slug} goes on with the code before this change.`);
    this.failures.set(slug, failures);
    await this.storeFailures();
  }

  private storeFailures(): Promise<void> {
    return this.options.storeFailures([...this.failures.values()].flat());
  }

  private onError(error: unknown): void {
    const reason = messageOf(error);
    this.options.report('error', `BATON_DEV: a change could not be loaded: ${reason}`);
  }
}

/** Packages, hidden files, tests, and files without source code: an agent's working folder is its own folder. */
function isIgnored(path: string, isFile: boolean): boolean {
  if (path === '') return false;
  if (path.split(sep).some((name) => name === 'node_modules' || name.startsWith('.'))) return true;
  return isFile && !isSourceFile(path);
}
