import { EXIT } from './exit.js';

/** What a command ends with that fails with this sentence (docs/reference/cli.md). */
export function exitCodeOf(sentence: string): number {
  if (
    /^(--|There is no token for|Missing|Unknown|Name |Give |Nothing to change|This deletes all|No (server|database) is|"\S+" cannot name)/.test(
      sentence,
    )
  ) {
    return EXIT.usage;
  }
  if (
    /^(There is no (?!token for)|Tenant "\S+" (has no|trusts no)|The tenant "\S+" has no|"\S+" is not bound|No push config of task|No tenant has a task)/.test(
      sentence,
    )
  ) {
    return EXIT.notFound;
  }
  if (/ refuses the token: /.test(sentence)) return EXIT.notAllowed;
  return /is not available|does not answer/.test(sentence) ? EXIT.unreachable : EXIT.failed;
}
