import { readFileSync } from 'node:fs';
import { OperatorError } from './operator-error.js';

/**
 * A small JSON object that `npm start` keeps in its folder; undefined if there is no such file. Throws
 * OperatorError for one that cannot be read.
 */
export function readStateFile(path: string): Record<string, unknown> | undefined {
  try {
    const value: unknown = JSON.parse(readFileSync(path, 'utf8'));
    if (typeof value === 'object' && value !== null) return value as Record<string, unknown>;
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' || code === 'ENOTDIR') return undefined;
    if (code === 'EACCES')
      throw new OperatorError(`${path} cannot be read: run this as the user who started Baton.`);
  }
  throw new OperatorError(`${path} is damaged: run \`npm start\` again to write a new one.`);
}
