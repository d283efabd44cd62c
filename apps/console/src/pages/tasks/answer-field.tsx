import { Checkbox, NativeSelect, TextInput } from '@mantine/core';
import type { QuestionField } from '@baton/contract';

/** The input of one field of a question. Its form has the value by the name of the field. */
export function AnswerField({ field }: { field: QuestionField }) {
  const { name, label, description, kind, isRequired, choices, initial, min, max } = field;
  const shown = { name, label, description, w: '100%', maw: '30rem' };
  if (kind === 'boolean') return <Checkbox {...shown} defaultChecked={initial === true} />;
  const text = initial === undefined ? '' : String(initial);
  if (kind === 'choice') {
    // Without a first choice the field is empty until the user chooses.
    const data = [{ value: '', label: '–' }, ...choices];
    return <NativeSelect {...shown} required={isRequired} data={data} defaultValue={text} />;
  }
  const isNumber = kind === 'number' || kind === 'integer';
  return (
    <TextInput
      {...shown}
      required={isRequired}
      type={isNumber ? 'number' : kind}
      defaultValue={text}
      {...(isNumber
        ? { min, max, step: kind === 'integer' ? 1 : 'any' }
        : { minLength: min, maxLength: max })}
    />
  );
}
