/** The tenant has no room left for what the new turn stores; it was refused. */
export class StorageFullError extends Error {
  override readonly name = 'StorageFullError';
}
