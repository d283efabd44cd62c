/** A backup cannot be made, read or restored. The message is one plain sentence or more, shown as it is. */
export class BackupError extends Error {
  override readonly name = 'BackupError';
}
