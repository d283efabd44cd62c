/** Some settings are missing or wrong. The message can be shown as it is. */
export class EnvironmentError extends Error {
  override readonly name = 'EnvironmentError';

  /** @param problems one plain sentence per bad setting, with the remedy */
  constructor(readonly problems: readonly string[]) {
    super(problems.join('\n'));
  }
}
