import { explain } from './explain.js';

const sentenceFor = (code: string): string => explain(Object.assign(new Error('refused'), { code })).sentence;

describe('what Postgres refuses', () => {
  it.each([
    ['53200', /^Postgres has too little memory: give it more/],
    ['53300', /^Postgres has no free connection: raise max_connections/],
    ['53400', /^A statement needs more temporary files than Postgres allows the role: raise temp_file_limit/],
  ])('with the code %s is one sentence with its remedy', (code, sentence) => {
    expect(sentenceFor(code)).toMatch(sentence);
  });
});
