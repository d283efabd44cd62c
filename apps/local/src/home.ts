import { messageOf } from '@baton/telemetry';
import { ensureKeyFile, type KeyName } from '@baton/config';
import { linkSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { recordedProcess, recordProcess } from './services/service-process.js';
import { StartError } from './start-error.js';

/** The content of `.baton/demo.json`. */
export interface Demo {
  url: string;
  tenant: string;
  token: string;
  /** Base URL of the scripted model at the last start, for the next one to take the same port. Unset: its agent is not made yet. */
  modelUrl?: string;
}

/** The services in use, for the command line (`.baton/runtime.json`). */
export interface Runtime {
  databaseUrl: string;
  redisUrl: string | null;
  /** Where the API answers operators. Unset: it is about to start. */
  managementUrl?: string;
}

/**
 * The folder (BATON_HOME) in which `npm start` keeps its state. One process at a time has it. Only the owner can read
 * files with secrets.
 */
export class Home {
  private constructor(readonly path: string) {}

  /** Makes the folder and takes it. Throws StartError if it cannot be written, or another process has it. */
  static claim(path: string): Home {
    const home = new Home(path);
    try {
      // As root, Postgres runs as another user, who must be able to pass through.
      mkdirSync(path, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
      mkdirSync(home.file('logs'), { recursive: true, mode: 0o700 });
      home.lock();
    } catch (error) {
      if (error instanceof StartError) throw error;
      throw new StartError(
        `The folder ${path} is not writable (${messageOf(error)}): set BATON_HOME to a writable folder.`,
      );
    }
    return home;
  }

  /** Releases the folder. */
  release(): void {
    rmSync(this.file('runtime.json'), { force: true });
    rmSync(this.file('lock'), { force: true });
  }

  file(...names: string[]): string {
    return join(this.path, ...names);
  }

  /** The path as a person in the working folder would write it. */
  shown(...names: string[]): string {
    const short = relative(process.cwd(), this.file(...names));
    return short.startsWith('..') ? this.file(...names) : short;
  }

  /** A key that is made at the first start. */
  key(name: KeyName): string {
    const file = this.file(name);
    ensureKeyFile(file, name);
    return readFileSync(file, 'utf8').trim();
  }

  /** The demo tenant's token of an earlier start. */
  readDemo(): Demo | undefined {
    try {
      return JSON.parse(readFileSync(this.file('demo.json'), 'utf8')) as Demo;
    } catch {
      return undefined; // None yet, or broken: a new one is issued.
    }
  }

  writeDemo(demo: Demo): void {
    this.writeSecret('demo.json', demo);
  }

  writeRuntime(runtime: Runtime): void {
    this.writeSecret('runtime.json', runtime);
  }

  private writeSecret(name: string, content: object): void {
    const file = this.file(name);
    rmSync(file, { force: true }); // The mode counts only for a new file.
    writeFileSync(file, `${JSON.stringify(content, null, 2)}\n`, { mode: 0o600 });
  }

  private lock(): void {
    const lock = this.file('lock');
    const mine = `${lock}.${process.pid}`;
    recordProcess(mine, process.pid);
    try {
      if (recordedProcess(lock) === undefined) rmSync(lock, { force: true });
      linkSync(mine, lock); // Fails if it is there: of two that start at once, one gets it.
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
      throw new StartError(
        `Baton is already running from ${this.path} (process ${recordedProcess(lock) ?? 'unknown'}): stop it ` +
          'first, or give this one a folder and a port of its own, e.g. `BATON_HOME=.baton2 PORT=8081 npm start`.',
      );
    } finally {
      rmSync(mine, { force: true });
    }
  }
}
