import { existsSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const HOME = process.env.PEERS_HOME ?? fileURLToPath(new URL('../../../.baton/peers', import.meta.url));
const FOLDERS = [HOME, ...(process.env.PATH ?? '').split(delimiter)];

/** Path of a program that npm does not bring: in `PEERS_HOME` (.baton/peers), or on PATH. */
export const programPath = (name) => FOLDERS.map((folder) => join(folder, name)).find(existsSync);
