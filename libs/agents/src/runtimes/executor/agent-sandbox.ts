import { type Environment, EnvironmentError } from '@baton/config';
import { type SandboxFiles, sandboxProblem } from '@baton/sandbox';
import { lstatSync, mkdirSync, realpathSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { dirname, join, sep } from 'node:path';

/** Limits of an agent's process, beside its environment. */
export interface AgentSandbox {
  files: SandboxFiles;
  /** Variables that lead to the folder for temporary files. */
  env: Record<string, string>;
}

/** The folder `dist` of Baton. */
const DIST = join(__dirname, '../../../../..');

// Programs, libraries, certificates and names of hosts. Folders with data of users or services are left out: /home, /root, /srv, /opt, /tmp, /var.
const FOLDERS_OF_PROGRAMS = ['/', '/usr', '/usr/local'].flatMap((root) =>
  ['bin', 'sbin', 'lib', 'lib32', 'lib64', 'libx32', 'libexec', 'share', 'include'].map((name) =>
    join(root, name),
  ),
);
const SYSTEM = ['/etc', '/nix', '/proc', '/sys', '/run/systemd/resolve', '/run/resolvconf'];
const DEVICES = ['null', 'zero', 'full', 'random', 'urandom', 'tty', 'ptmx', 'pts', 'shm'];
/** Variables of an agent that name files with certificates. */
const CERTIFICATES = ['NODE_EXTRA_CA_CERTS', 'SSL_CERT_FILE', 'SSL_CERT_DIR'];

type SandboxSettings = Pick<Environment, 'agentsDir' | 'executorSandbox' | 'executorRead' | 'executorWrite'>;

/**
 * The sandbox of an agent's process. Undefined where there is none.
 * @param folder that the agent may change: its own
 * @param scratch path below the folder for temporary files, such as the agent's slug
 * @param env the environment of the agent
 * @throws Error if the folder for temporary files cannot be made
 */
export function agentSandbox(
  folder: string,
  scratch: string,
  env: Readonly<Record<string, string>>,
  settings: SandboxSettings,
): AgentSandbox | undefined {
  if (settings.executorSandbox === 'off' || sandboxProblem() !== undefined) return undefined;
  const temporary = temporaryFolder(scratch);
  const certificates = CERTIFICATES.flatMap((name) => env[name] ?? []);
  const read = [...readableFolders(settings), ...certificates];
  const write = [folder, temporary, ...DEVICES.map((name) => `/dev/${name}`), ...settings.executorWrite];
  return { files: { read, write }, env: { TMPDIR: temporary, TMP: temporary, TEMP: temporary } };
}

function readableFolders({ agentsDir = '/', executorRead }: SandboxSettings): string[] {
  return [
    ...FOLDERS_OF_PROGRAMS,
    ...SYSTEM,
    dirname(process.execPath),
    join(dirname(process.execPath), '../lib/node_modules'),
    DIST,
    ...packagesAbove(DIST),
    agentsDir,
    ...packagesAbove(agentsDir),
    ...executorRead,
  ];
}

/**
 * Why agents in code run without a sandbox. Undefined if they have one.
 * @throws EnvironmentError if EXECUTOR_SANDBOX requires one
 */
export function missingSandboxReason({
  executorSandbox,
}: Pick<SandboxSettings, 'executorSandbox'>): string | undefined {
  if (executorSandbox === 'off') return 'EXECUTOR_SANDBOX is off';
  const problem = sandboxProblem();
  if (problem !== undefined && executorSandbox === 'required') {
    throw new EnvironmentError([
      `EXECUTOR_SANDBOX is required, and this system has no sandbox: ${problem}. Remove the cause, or set it to auto.`,
    ]);
  }
  return problem;
}

/** Files that agents can read in spite of the sandbox, because they are in a folder of an agent. */
export function filesInReach(files: readonly string[], settings: SandboxSettings): string[] {
  const folders = [...readableFolders(settings), ...settings.executorWrite].flatMap(realPathIfAny);
  return files.filter((file) =>
    realPathIfAny(file).some((real) =>
      folders.some((folder) => real === folder || real.startsWith(folder.replace(/\/?$/, sep))),
    ),
  );
}

/** The real path as the only element. Empty if there is no such file. */
function realPathIfAny(path: string): string[] {
  try {
    return [realpathSync(path)];
  } catch {
    return [];
  }
}

/** Files and folders above an agent that Node.js and TypeScript read to find packages. */
function packagesAbove(folder: string): string[] {
  const above = dirname(folder);
  const found = ['node_modules', 'package.json', 'tsconfig.json'].map((name) => join(above, name));
  return above === folder ? [] : [...found, ...packagesAbove(above)];
}

/**
 * Creates a folder for temporary files. It is below a folder that only this user of the machine can enter.
 * @param scratch path below the folder of the user
 * @returns absolute path
 * @throws Error if the folder of the user belongs to another one, or if others may enter it; errors of the file system
 */
export function temporaryFolder(scratch: string): string {
  const uid = process.getuid?.() ?? 0;
  const own = join(tmpdir(), `baton-agents-${uid}`);
  mkdirSync(own, { recursive: true, mode: 0o700 });
  const stats = lstatSync(own);
  if (!stats.isDirectory() || stats.uid !== uid || (stats.mode & 0o077) !== 0) {
    throw new Error(`${own} belongs to another user, or others may enter it: remove it`);
  }
  const folder = join(own, scratch);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  return folder;
}
