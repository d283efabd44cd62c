import { execSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { COMMAND_LINE } from './command-line.js';
import { masterKey } from './values.js';

/** Where an operator keeps the master key. At most one of the three is used: the first that is set. */
export interface MasterKeySource {
  masterKey: Buffer | undefined;
  previousMasterKeys: readonly Buffer[];
  /** A file with the key on its first line. Further lines are earlier keys. */
  masterKeyFile: string | undefined;
  /** A command that prints the same. */
  masterKeyCommand: string | undefined;
}

/** The keys of a process, 32 bytes each. */
export interface MasterKeys {
  /** Encrypts and decrypts. Undefined: the process cannot use secrets. */
  masterKey: Buffer | undefined;
  /** The setting that gives it: BATON_MASTER_KEY, BATON_MASTER_KEY_FILE or BATON_MASTER_KEY_COMMAND. */
  masterKeySetting: string;
  /** Only decrypt. */
  previousMasterKeys: readonly Buffer[];
}

/** Time for the command, which may ask a server. */
const COMMAND_MS = 30_000;
/** A key has 44 characters. A command that prints more was the wrong one. */
const MAX_BYTES = 65_536;
/** Characters of the command's output about its failure. */
const MAX_REASON = 300;
/** A process reads its settings more than once. The command runs once. */
const printed = new Map<string, string>();

/**
 * The key that encrypts secrets, and those that still decrypt. Throws an Error with one sentence that names the setting,
 * and never a key.
 */
export function readMasterKeys(source: MasterKeySource): MasterKeys {
  const { masterKeyFile: file, masterKeyCommand: command, previousMasterKeys: previous } = source;
  const none = { masterKey: undefined, masterKeySetting: 'BATON_MASTER_KEY', previousMasterKeys: previous };
  if (source.masterKey) return { ...none, masterKey: source.masterKey };
  const name = file === undefined ? 'BATON_MASTER_KEY_COMMAND' : 'BATON_MASTER_KEY_FILE';
  const text = file === undefined ? command && printedBy(command) : contentOf(file);
  if (text === undefined) return none;
  const lines = text.split('\n').map((line) => line.trim());
  const [newest, ...others] = lines.filter((line) => line !== '').map((line) => keyOf(line, name));
  if (!newest) throw new Error(`${name} gives no key: ${REMEDY}.`);
  return { masterKey: newest, masterKeySetting: name, previousMasterKeys: [...others, ...previous] };
}

/**
 * The id of a master key: 48 bits of the SHA-256 of 256 random bits. Each secret is stored with the id of its key, so ids are
 * no secret, and they reveal nothing of the key.
 */
export const masterKeyId = (key: Buffer): string =>
  createHash('sha256').update('baton master key ').update(key).digest('hex').slice(0, 12);

/** The part of a process' master keys that the database may have. */
export interface MasterKeyIds {
  /** The id of the key that encrypts. */
  newest: string;
  /** Ids of the keys that only decrypt. */
  previous: readonly string[];
  /** The setting that gives the newest key. */
  setting: string;
  /** The command for an operator who has lost the key of the database. */
  ifLost: string;
}

/** Undefined without a master key. */
export const masterKeyIdsOf = ({
  masterKey,
  masterKeySetting = 'BATON_MASTER_KEY',
  previousMasterKeys,
}: Omit<MasterKeys, 'masterKeySetting'> & Partial<MasterKeys>): MasterKeyIds | undefined =>
  masterKey && {
    newest: masterKeyId(masterKey),
    previous: previousMasterKeys.map(masterKeyId),
    setting: masterKeySetting,
    ifLost: `${COMMAND_LINE} secrets rotate --key-lost`,
  };

const REMEDY = 'it must give the base64 of 32 random bytes, e.g. from `openssl rand -base64 32`';

function keyOf(line: string, name: string): Buffer {
  const result = masterKey.safeParse(line);
  if (result.success) return result.data;
  throw new Error(`${name} gives a line that is no key: ${REMEDY}, and earlier keys on further lines.`);
}

function contentOf(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    throw new Error(
      `BATON_MASTER_KEY_FILE is ${JSON.stringify(file)}, which cannot be read (${code ?? 'unknown reason'}): name a ` +
        'file that this process may read.',
    );
  }
}

function printedBy(command: string): string {
  const known = printed.get(command);
  if (known !== undefined) return known;
  try {
    const options = { timeout: COMMAND_MS, maxBuffer: MAX_BYTES, encoding: 'utf8', stdio: 'pipe' } as const;
    const text = execSync(command, options);
    printed.set(command, text);
    return text;
  } catch (error) {
    // Its standard output may hold the key, and the message of the error has the whole command.
    const { status, code, stderr } = error as { status?: number | null; code?: string; stderr?: string };
    const how =
      code === 'ETIMEDOUT' ? `no answer in ${COMMAND_MS / 1000} s` : `exit code ${status ?? code ?? '?'}`;
    const output = (stderr ?? '').trim().replaceAll(/\s+/g, ' ').slice(0, MAX_REASON);
    throw new Error(
      `BATON_MASTER_KEY_COMMAND failed (${how}${output && `: ${output}`}): it must print the key, in at most ` +
        `${COMMAND_MS / 1000} s.`,
    );
  }
}
