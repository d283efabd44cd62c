/** A place in a file. */
export interface Place {
  /** Absolute path. */
  file: string;
  line?: number | undefined;
}

/** The module of an agent cannot be used. The message begins with the file. */
export class LoadError extends Error {
  override readonly name = 'LoadError';

  constructor(
    file: string,
    readonly reason: string,
    /** Where the fault is, if that is known better than the file. */
    readonly place: Place = { file },
    cause?: unknown,
  ) {
    const at = place.line === undefined ? '' : ` (${place.file}:${place.line})`;
    super(`${file}: ${reason}${at}`, { cause });
  }
}
