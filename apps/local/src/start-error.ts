/** Why `npm start` cannot continue: one plain sentence with the remedy, shown as it is. */
export class StartError extends Error {
  override readonly name = 'StartError';
}
