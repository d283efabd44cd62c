import { schemaFields } from '@baton/contract';
import { answerData } from './answer-data';

const schema = {
  type: 'object',
  properties: {
    city: { type: 'string' },
    nights: { type: 'integer' },
    pets: { type: 'boolean' },
    room: { type: 'string', enum: ['s', 'd'] },
    mail: { type: 'string', format: 'email' },
  },
};

it('an answer has the types of its schema, and nothing of empty fields', () => {
  const form = new FormData();
  for (const [name, value] of Object.entries({ city: 'Bonn', nights: '3', room: '', mail: '' }))
    form.set(name, value);
  expect(answerData(schemaFields(schema)!, form)).toEqual({ city: 'Bonn', nights: 3, pets: false });
  form.set('pets', 'on');
  expect(answerData(schemaFields(schema)!, form)).toMatchObject({ pets: true });
});
