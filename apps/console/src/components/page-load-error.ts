/** A file of the console that could not be loaded. */
export class PageLoadError extends Error {
  constructor(cause: unknown) {
    super('A file of the console could not be loaded. Check your connection, then try again.', { cause });
    this.name = 'PageLoadError';
  }
}
