import { execFile } from 'node:child_process';
import { realpath } from 'node:fs/promises';
import { relative, sep } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import type { LoadFault } from '../protocol.js';
import { LoadError, type Place } from './load-error.js';
import { property } from './property.js';

/**
 * Where in the agent's folder an error of `loadExecutor`, or of a constructor, comes from.
 * @param folder absolute path of the agent's folder
 */
export async function loadFaultOf(error: unknown, folder: string): Promise<LoadFault> {
  const text = error instanceof LoadError ? error.reason : messageOf(error);
  const place = error instanceof LoadError ? error.place : await frameIn(folder, error);
  const real = await realpath(folder).catch(() => folder);
  // A module that is found through a link has its real path in stacks.
  const base = place?.file.startsWith(real + sep) ? real : folder;
  return {
    file: place ? relative(base, place.file) : '',
    ...(place?.line !== undefined && { line: place.line }),
    reason: text.slice(0, MAX_REASON),
  };
}

/** Characters of a fault in a log and in the console. */
const MAX_REASON = 1000;
/** Characters of a stack that is searched for the author's file. */
const MAX_STACK = 10_000;

/** Modules that Node.js runs through tsx. */
export const TYPESCRIPT = /\.[cm]?ts$/;

/** Where a syntax error is; undefined if that is unknown. */
export async function placeOfSyntax(error: SyntaxError, file: string): Promise<Place | undefined> {
  const known = firstPlace(error.stack ?? '');
  if (known) return known;
  // Node cannot check TypeScript.
  if (TYPESCRIPT.test(file)) return undefined;
  // For ES modules Node reports the position only on the terminal.
  const checked = await promisify(execFile)(process.execPath, ['--check', file], { env: {} }).then(
    () => '',
    (failure: unknown) => String(property(failure, 'stderr')),
  );
  return firstPlace(checked);
}

function firstPlace(text: string): Place | undefined {
  const found = /^(?:file:\/\/)?(\/.+):(\d+)$/m.exec(text);
  return found?.[1] === undefined ? undefined : { file: found[1], line: Number(found[2]) };
}

/** The innermost frame of an error's stack that is in the agent's folder. */
export async function frameIn(folder: string, error: unknown): Promise<Place | undefined> {
  const stack = property(error, 'stack');
  if (typeof stack !== 'string') return undefined;
  const real = await realpath(folder).catch(() => folder);
  for (const [, url, line] of stack
    .slice(0, MAX_STACK)
    .matchAll(/^ +at .*?((?:file:\/\/)?\/[^()\n]+):(\d+):\d+\)?$/gm)) {
    const file = url?.startsWith('file://') ? fileURLToPath(url) : (url ?? '');
    if (file.startsWith(folder + sep) || file.startsWith(real + sep)) return { file, line: Number(line) };
  }
  return undefined;
}

/** As in `@baton/telemetry`, which the process of an agent does not load. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
