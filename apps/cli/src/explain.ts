import { ProtocolError } from '@baton/a2a';
import { EnvironmentError } from '@baton/config';
import { isTransient, NameTakenError } from '@baton/database';
import { OperatorError } from './operator-error.js';

/** Codes of Prisma and SQLSTATEs, and what the operator can do about each. */
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
];

/** What went wrong and what to do about it, in one plain sentence: never a stack. */
export function explain(error: unknown): string {
  if (error instanceof OperatorError || error instanceof EnvironmentError) return error.message;
  if (error instanceof NameTakenError) return `${error.message}: choose another slug.`;
  if (error instanceof ProtocolError) return `${error.message}.`;
  const codes = codesOf(error);
  const known = REMEDIES.find((remedy) => remedy.codes.some((code) => codes.includes(code)));
  if (known) return known.sentence;
  if (isTransient(error)) {
    return `Postgres is not available (${reasonOf(error)}): check that it runs and that DATABASE_URL names it, or start Baton with \`npm start\` in this folder.`;
  }
  return `Something unexpected went wrong: ${reasonOf(error)}.`;
}

/** The codes of an error and of everything that caused it. */
function codesOf(error: unknown): string[] {
  if (!(error instanceof Error)) return [];
  const { code } = error as { code?: unknown };
  return [...(typeof code === 'string' ? [code] : []), ...codesOf(error.cause)];
}

/** Prisma shows the calling code first; what happened is in the last line. */
function reasonOf(error: unknown): string {
  const message = error instanceof Error ? error.message || error.name : String(error);
  return (message.trim().split('\n').at(-1) ?? '').trim().replace(/\.$/, '');
}
