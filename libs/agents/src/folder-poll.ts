import { readdir } from 'node:fs/promises';
import { join } from 'node:path';
import { agentFiles, isModule, isSourceFile, LOCK_FILE } from './agent-code.js';
import { fileStamps, isSameFiles } from './file-stamps.js';

/** Time between two polls, in ms. */
const POLL_MS = 5_000;

type Stamps = ReadonlyMap<string, string>;

interface SeenFolder {
  /** When its agent was loaded. */
  loaded: Stamps;
  /** At the last poll. */
  last: Stamps;
}

const NEW: SeenFolder = { loaded: new Map(), last: new Map() };

/**
 * Whether any source file of an agent counts. Otherwise only modules count that were there when it was loaded: such an agent may write
 * files into its folder while it runs.
 */
type CountsAll = (slug: string) => boolean;

/** Finds changed files below the folders of agents. It polls them every 5 s, as network volumes report no changes. */
export class FolderPoll {
  readonly isForAuthors = false;
  private readonly seen = new Map<string, SeenFolder>();
  private timer: NodeJS.Timeout | undefined;
  private isClosed = false;

  private constructor(private readonly directory: string) {}

  /**
   * Looks for the first time. Call it before the agents are loaded, so that no change after that is missed.
   * @param directory absolute path of `BATON_AGENTS_DIR`
   */
  static async begin(directory: string): Promise<FolderPoll> {
    const poll = new FolderPoll(directory);
    // A directory that cannot be read has no agents.
    const slugs = await poll.slugs().catch(() => []);
    for (const slug of slugs) {
      const stamps = await poll.stampsOf(slug);
      poll.seen.set(slug, { loaded: stamps, last: stamps });
    }
    return poll;
  }

  /** Polls the folder, and calls `onChange` for each agent that `readChanges` returns. */
  start(
    countsAll: CountsAll,
    { onChange, onError }: { onChange: (slug: string) => void; onError: (error: unknown) => void },
  ): void {
    if (this.isClosed) return;
    this.timer = setTimeout(() => {
      void this.readChanges(countsAll)
        .then((slugs) => slugs.forEach(onChange), onError)
        .then(() => this.start(countsAll, { onChange, onError }));
    }, POLL_MS).unref();
  }

  close(): void {
    this.isClosed = true;
    clearTimeout(this.timer);
  }

  /**
   * @returns the agents whose files have changed since they were loaded. Two polls must find the same files: a release may still be being copied
   * @throws the error of the file system, if the directory cannot be read
   */
  async readChanges(countsAll: CountsAll): Promise<string[]> {
    const changed: string[] = [];
    for (const slug of new Set([...(await this.slugs()), ...this.seen.keys()])) {
      const now = await this.stampsOf(slug);
      const { loaded, last } = this.seen.get(slug) ?? NEW;
      const hasChanged = countsAll(slug)
        ? !isSameFiles(now, loaded)
        : !isSameFiles(modulesOf(loaded, now), modulesOf(loaded, loaded));
      const isReady = hasChanged && isSameFiles(now, last);
      if (isReady) changed.push(slug);
      const isGone = now.size === 0 && last.size === 0;
      if (isGone) this.seen.delete(slug);
      else this.seen.set(slug, { loaded: isReady ? now : loaded, last: now });
    }
    return changed;
  }

  /** Empty: the folder is gone. */
  private async stampsOf(slug: string): Promise<Stamps> {
    const folder = join(this.directory, slug);
    const paths = await agentFiles(folder, isSourceFile).catch(() => []);
    return fileStamps(folder, paths.length === 0 ? [] : [...paths, join('..', LOCK_FILE)]);
  }

  private async slugs(): Promise<string[]> {
    const entries = await readdir(this.directory, { withFileTypes: true });
    return entries.flatMap((entry) =>
      entry.isFile() || entry.name.startsWith('.') || entry.name === 'node_modules' ? [] : [entry.name],
    );
  }
}

/** The modules that were there before, as they are now. */
const modulesOf = (before: Stamps, now: Stamps): Stamps =>
  new Map([...now].filter(([path]) => before.has(path) && isModule(path)));
