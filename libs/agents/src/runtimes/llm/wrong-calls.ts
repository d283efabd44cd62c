/** A call that is not made, because its arguments are invalid or incomplete. */
export interface WrongCall {
  /** The name of the tool as the model wrote it. */
  tool: string;
  /** The arguments as they arrived, shortened. */
  received: string;
  /** The fault of the arguments. */
  wrong: string;
}

/** The error that the model reads about its wrong calls. */
export function callCorrection(calls: readonly WrongCall[]): string {
  const lines = calls.map(({ tool, received, wrong }) =>
    tool === ''
      ? 'The provider could not read it.'
      : `The arguments of "${tool}" are not usable: ${wrong}. Received: ${received}`,
  );
  return [
    'No call of your last answer was made.',
    ...lines,
    'Answer again. If you call a tool, write one whole JSON object as its arguments.',
  ].join('\n');
}

/** Why the turn fails with these calls. */
export function wrongCallsFailure([first, ...others]: readonly WrongCall[]): string {
  const { tool = '', wrong = '' } = first ?? {};
  const what =
    tool === ''
      ? 'The provider could not read a call that the model wrote'
      : `The model called "${tool}" with arguments that are not usable: ${wrong}`;
  const more = others.length > 0 ? ` (and ${others.length} more)` : '';
  return (
    `${what}${more}. No call of this answer was made. Send the message again, choose another model, or ` +
    'simplify the input of the tool.'
  );
}
