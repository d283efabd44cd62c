/**
 * What an operator lets tenants start: the words with which a command line begins, after the names of the
 * variables (each followed by `=`) that a tenant may set for it.
 */
export type StdioAllowance = readonly string[];

interface CommandLine {
  command: string;
  args: readonly string[];
  env: Readonly<Record<string, unknown>>;
}

/** Why a command may not be started here; undefined if it may. */
export function whyNotAllowed(
  { command, args, env }: CommandLine,
  allowances: readonly StdioAllowance[],
): string | undefined {
  const line = [command, ...args];
  const fitting = allowances.map(split).filter(({ words }) => words.every((word, i) => line[i] === word));
  if (fitting.length === 0) return `the operator of this server does not allow the command "${command}"`;
  const names = Object.keys(env);
  if (fitting.some(({ variables }) => names.every((name) => variables.includes(name)))) return undefined;
  return `the operator of this server does not allow to set ${names.join(', ')} for the command "${command}"`;
}

function split(allowance: StdioAllowance): { variables: string[]; words: readonly string[] } {
  const start = allowance.findIndex((word) => !word.endsWith('='));
  const variables = allowance.slice(0, start).map((word) => word.slice(0, -1));
  return { variables, words: allowance.slice(start) };
}
