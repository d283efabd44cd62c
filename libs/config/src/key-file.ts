import { generateKeyPairSync, randomBytes } from 'node:crypto';
import { writeFileSync } from 'node:fs';

/** How the keys of an installation are made: `master-key`, for instance, is the name of the file of BATON_MASTER_KEY. */
const MAKERS = {
  'master-key': () => `${randomBytes(32).toString('base64')}\n`,
  'database-system-key': () => `${randomBytes(32).toString('base64')}\n`,
  'push-signing-key': () => {
    const { privateKey } = generateKeyPairSync('ec', { namedCurve: 'P-256' });
    return privateKey.export({ type: 'pkcs8', format: 'pem' });
  },
};

export type KeyName = keyof typeof MAKERS;

/** Makes a key, unless the file exists. Only the owner can read it. Throws if the file cannot be written. */
export function ensureKeyFile(file: string, name: KeyName): void {
  try {
    writeFileSync(file, MAKERS[name](), { flag: 'wx', mode: 0o400 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
  }
}
