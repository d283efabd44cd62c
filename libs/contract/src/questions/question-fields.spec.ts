import { questionFields, readableParts, schemaFields } from './question-fields.js';

const schema = {
  type: 'object',
  properties: {
    city: { type: 'string', title: 'City', description: 'Where to', minLength: 2, default: 'Ulm' },
    nights: { type: 'integer', minimum: 1, maximum: 9 },
    pets: { type: 'boolean' },
    room: { type: 'string', enum: ['s', 'd'], enumNames: ['Single', 'Double'] },
    meal: { type: 'string', oneOf: [{ const: 'v', title: 'Vegan' }] },
    mail: { type: 'string', format: 'email' },
  },
  required: ['city'],
};
const asked = [{ text: 'Which hotel?' }, { data: { requestedSchema: schema } }];

it('a question with a schema has a field for each of its members', () => {
  expect(questionFields(asked)).toMatchObject([
    {
      name: 'city',
      label: 'City',
      description: 'Where to',
      kind: 'text',
      isRequired: true,
      min: 2,
      initial: 'Ulm',
    },
    { name: 'nights', label: 'nights', kind: 'integer', isRequired: false, min: 1, max: 9 },
    { name: 'pets', kind: 'boolean' },
    {
      name: 'room',
      kind: 'choice',
      choices: [
        { value: 's', label: 'Single' },
        { value: 'd', label: 'Double' },
      ],
    },
    { name: 'meal', kind: 'choice', choices: [{ value: 'v', label: 'Vegan' }] },
    { name: 'mail', kind: 'email' },
  ]);
  const approval = { data: { approval: { callId: 'c' } } };
  expect(readableParts([...asked, approval, { data: 7 }])).toEqual([{ text: 'Which hotel?' }, { data: 7 }]);
});

it.each([
  ['no schema', [{ text: 'x' }, { data: [1] }]],
  ['a list', [{ data: { requestedSchema: { properties: { a: { type: 'array' } } } } }]],
  [
    'a choice of numbers',
    [{ data: { requestedSchema: { properties: { a: { type: 'integer', enum: [1] }, b: {} } } } }],
  ],
  ['no members', [{ data: { requestedSchema: { properties: {} } } }]],
  ['no object', [{ data: { requestedSchema: 'text' } }]],
])('a question with %s is answered in words', (_, parts) => {
  expect(questionFields(parts)).toBeUndefined();
});

it('the schema of a question of a tool has the same fields, and none without a schema', () => {
  expect(schemaFields(schema)).toEqual(questionFields(asked));
  expect(schemaFields(undefined)).toBeUndefined();
});
