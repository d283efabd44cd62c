/** Another config has the id: one of a native webhook of the tenant. */
export class PushConfigTakenError extends Error {
  override readonly name = 'PushConfigTakenError';
}
