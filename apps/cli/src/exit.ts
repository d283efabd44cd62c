/** What a command ends with. Documented in docs/reference/cli.md. */
export const EXIT = {
  done: 0,
  failed: 1,
  /** An unknown option, a missing argument, a value that an option cannot have. */
  usage: 2,
  notFound: 3,
  /** The token is refused, or lacks a right. */
  notAllowed: 4,
  /** The server or the database does not answer. */
  unreachable: 5,
  /** The task that the command was about has failed or was rejected. */
  taskFailed: 6,
  taskCanceled: 7,
} as const;
