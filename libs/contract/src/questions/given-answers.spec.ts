import { answerAt, answersOf, sentMessages } from './given-answers.js';

const said = (text: string, role = 'ROLE_USER') => ({ role, parts: [{ text }] });
const requestedSchema = {
  type: 'object',
  properties: {
    city: { type: 'string', title: 'City' },
    pets: { type: 'boolean', title: 'With pets' },
    room: { type: 'string', title: 'Room', enum: ['s', 'd'], enumNames: ['Single', 'Double'] },
  },
};
const request = { callId: 'c', tool: 'shop_refund', input: { euros: 5 } };
const decided = (decision: object) => ({
  parts: [{ data: { approval: { callId: 'c', ...decision } } }],
  metadata: { 'baton.approver': { principal: 'token:1', at: '2026-01-31T12:00:00.000Z' } },
});

describe('the messages of callers', () => {
  const taskOf = (history: object[], starts: number[]) => ({
    task: { history },
    runs: starts.map((start) => ({ start_event: start, created_at: `2026-01-31T12:00:0${start}.000Z` })),
  });
  const asking = said('who?', 'ROLE_AGENT');

  it('belong to the events that accepted them, with the questions before', () => {
    expect([...sentMessages(taskOf([said('hi'), asking, said('Ada')], [4, 1]))]).toEqual([
      [4, { message: said('Ada'), asked: asking.parts }],
      [1, { message: said('hi'), asked: [] }],
    ]);
  });

  it('are the newest where the answer of the API has left out the first ones', () => {
    const third = { message: said('third'), asked: [] };
    expect([...sentMessages(taskOf([said('third')], [9, 4, 1]))]).toEqual([[9, third]]);
    expect([...sentMessages(taskOf([said('second'), said('third')], [9]))]).toEqual([[9, third]]);
  });

  it('are found by the end of the question that they answer', () => {
    const task = taskOf([said('hi'), asking, said('Ada')], [4, 1]);
    expect(answerAt(task, '2026-01-31T12:00:04.000Z')?.message).toEqual(said('Ada'));
    expect(answerAt(task, null)).toBeUndefined();
  });
});

describe('what a message answers', () => {
  const asked = (question?: object) => [{ text: 'may I?' }, { data: { approval: { ...request, question } } }];

  it.each([
    [{ approved: true }, { verb: 'Approved', tool: 'shop_refund', fields: [] }],
    [
      { approved: false, reason: 'a draft' },
      { verb: 'Rejected', tool: 'shop_refund', reason: 'a draft', fields: [] },
    ],
    [
      { approved: true, input: { euros: 4, to: ['a'] } },
      {
        verb: 'Approved with another input',
        tool: 'shop_refund',
        fields: [
          { name: 'euros', value: '4' },
          { name: 'to', value: '["a"]' },
        ],
      },
    ],
  ])('is a decision on a call: %j', (decision, answer) => {
    expect(answersOf(decided(decision), asked())).toEqual({ answers: [answer], rest: [], by: 'token:1' });
  });

  it('has the words of the form of a tool', () => {
    const input = { city: 'Bonn', pets: false, room: 'd', more: null };
    const { answers } = answersOf(decided({ approved: true, input }), asked({ requestedSchema }));
    expect(answers).toEqual([
      {
        verb: 'Answered',
        tool: 'shop_refund',
        fields: [
          { name: 'City', value: 'Bonn' },
          { name: 'With pets', value: 'no' },
          { name: 'Room', value: 'Double' },
          { name: 'more', value: 'null' },
        ],
      },
    ]);
    expect(answersOf(decided({ approved: false }), asked({ url: 'https://a.example' })).answers).toEqual([
      { verb: 'Declined', tool: 'shop_refund', fields: [] },
    ]);
  });

  it('has the words of the form of an agent, beside other parts', () => {
    const parts = [{ text: 'here' }, { data: { city: 'Ulm' } }];
    expect(answersOf({ parts }, [{ data: { requestedSchema } }])).toEqual({
      answers: [{ verb: 'Answered', fields: [{ name: 'City', value: 'Ulm' }] }],
      rest: [{ text: 'here' }],
    });
  });

  it('is nothing where nothing was asked', () => {
    const parts = [{ data: { city: 'Ulm' } }, { data: { approval: 'no' } }];
    expect(answersOf({ parts }, [])).toEqual({ answers: [], rest: parts });
  });

  it('has a decision on a call that is no longer known', () => {
    expect(answersOf(decided({ approved: true, input: 7 }), []).answers).toEqual([
      { verb: 'Approved with another input', fields: [{ name: 'input', value: '7' }] },
    ]);
  });
});
