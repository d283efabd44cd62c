import { A2AError } from '@a2a-js/sdk/errors';
import { ProtocolError } from '@baton/a2a';
import { EnvironmentError } from '@baton/config';
import { BackupError, DatabaseSetupError, isTransient, NameTakenError } from '@baton/database';
import { SecretError } from '@baton/identity';
import { OfTaskError } from './of-task-error.js';
import { EXIT } from './exit.js';
import { OperatorError } from './operator-error.js';

/** Codes of Prisma and SQLSTATEs, and what the operator can do about each: the fault, a colon, the remedy. */
const REMEDIES: readonly { codes: readonly string[]; sentence: string }[] = [
  {
    codes: ['P2021', 'P2022', '42P01', '42703'],
    sentence: 'The database is not migrated: run npm run migrate.',
  },
  {
    codes: ['P1000', 'P1010', '28P01', '28000'],
    sentence: 'Postgres refuses the user or password of DATABASE_URL: correct them.',
  },
  {
    codes: ['P1003', '3D000'],
    sentence: 'The database that DATABASE_URL names does not exist: create it, then run npm run migrate.',
  },
  {
    codes: ['53300', 'P2037'],
    sentence:
      'Postgres has no free connection: raise max_connections, or lower DATABASE_POOL_SIZE or the number of processes.',
  },
  {
    codes: ['53100'],
    sentence: 'Postgres cannot write, because its disk is full: make room, or enlarge the disk.',
  },
  {
    codes: ['53200'],
    sentence: 'Postgres has too little memory: give it more, or lower its work_mem or shared_buffers.',
  },
  {
    codes: ['53400'],
    sentence:
      'A statement needs more temporary files than Postgres allows the role: raise temp_file_limit, or work_mem.',
  },
  {
    codes: ['25006'],
    sentence:
      'Postgres may only be read: let DATABASE_URL name the primary, not a standby, and remove default_transaction_read_only.',
  },
  {
    codes: ['57P03'],
    sentence:
      'Postgres starts or recovers at the moment: wait until it has done so, and look at its log if it takes long.',
  },
  {
    codes: ['42501'],
    sentence:
      'Postgres refuses something to the role of DATABASE_URL: give it its rights (docs/operating/security.md#the-role-of-database_url).',
  },
];

/** An error for the operator. */
export interface Explained {
  /** The fault and its remedy in one plain sentence, never a stack. Empty: the exit code is the whole answer. */
  sentence: string;
  exitCode: number;
}

/** The sentence and the exit code for any error of a command. */
export function explain(error: unknown): Explained {
  if (error instanceof OfTaskError) return ofTask(error.taskId, explain(error.cause));
  return { sentence: sentenceOf(error), exitCode: exitCodeOf(error) };
}

/** Names the task, unless the sentence does so, or is about the arguments. */
function ofTask(taskId: string, { sentence, exitCode }: Explained): Explained {
  const isNamed = sentence === '' || sentence.includes(taskId) || exitCode === EXIT.usage;
  return { sentence: isNamed ? sentence : `Task ${taskId}: ${sentence}`, exitCode };
}

function sentenceOf(error: unknown): string {
  if (error instanceof OperatorError || error instanceof EnvironmentError) return error.message;
  if (error instanceof SecretError || error instanceof BackupError) return error.message;
  if (error instanceof DatabaseSetupError) return error.message;
  if (error instanceof NameTakenError) return `${error.message}: choose another slug.`;
  const answer = chain(error).find((each) => each instanceof A2AError);
  if (answer) return `The server answers: ${reasonOf(answer)}.`;
  if (error instanceof ProtocolError) return `${error.message}.`;
  const known = knownFault(error);
  if (known !== undefined) return known;
  if (isTransient(error)) {
    return `Postgres is not available (${reasonOf(error).replace(/^Postgres is not available: /, '')}): check that it runs and that DATABASE_URL names it, or start Baton with \`npm start\` in this folder.`;
  }
  return `Unexpected error: ${reasonOf(error)}.`;
}

/** What Postgres refuses, with the remedy behind a colon; undefined if the fault is unusual. */
export function knownFault(error: unknown): string | undefined {
  const codes = chain(error).map((each) => (each as { code?: unknown }).code);
  return REMEDIES.find((remedy) => codes.some((code) => remedy.codes.includes(String(code))))?.sentence;
}

/** Exit codes by the kind of a ProtocolError. Others end with `EXIT.failed`. */
const EXIT_OF_KIND: Partial<Record<string, number>> = {
  'invalid-params': EXIT.usage,
  'not-found': EXIT.notFound,
  'task-not-found': EXIT.notFound,
  forbidden: EXIT.notAllowed,
};

function exitCodeOf(error: unknown): number {
  if (error instanceof OperatorError) return error.options.exitCode ?? EXIT.failed;
  if (error instanceof ProtocolError) return EXIT_OF_KIND[error.kind] ?? EXIT.failed;
  if (chain(error).some(({ name }) => name.endsWith('TaskNotFoundError'))) return EXIT.notFound;
  return isTransient(error) ? EXIT.unreachable : EXIT.failed;
}

/** An error and everything that caused it. */
const chain = (error: unknown): Error[] => (error instanceof Error ? [error, ...chain(error.cause)] : []);

/** Prisma shows the calling code first; what happened is in the last line. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error);
  return (message.trim().split('\n').at(-1) ?? '').trim().replace(/\.$/, '');
}
