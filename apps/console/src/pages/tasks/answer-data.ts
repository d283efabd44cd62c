import type { QuestionField } from '@baton/contract';

/** The values of a filled-in form, as data. Empty fields are left out. @param form values by the names of fields */
export function answerData(fields: readonly QuestionField[], form: FormData): Record<string, unknown> {
  return Object.fromEntries(
    fields.flatMap(({ name, kind }): [string, unknown][] => {
      const value = form.get(name);
      if (kind === 'boolean') return [[name, value !== null]];
      if (typeof value !== 'string' || value === '') return [];
      return [[name, kind === 'number' || kind === 'integer' ? Number(value) : value]];
    }),
  );
}
