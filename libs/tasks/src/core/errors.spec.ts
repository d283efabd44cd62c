import { givenUpText } from './given-up-text.js';

describe('the text of a run that has used up its attempts', () => {
  const lastCrash = "The agent's process was ended by SIGKILL";

  it.each([
    [1, undefined, 'Given up after one attempt: the worker died or stopped answering'],
    [3, undefined, 'Given up after 3 attempts: each time the worker died or stopped answering'],
    [1, lastCrash, `Given up after one attempt: ${lastCrash}`],
    [3, lastCrash, `Given up after 3 attempts. The last one: ${lastCrash}`],
  ])('after %i, with %s', (crashCount, last, text) => {
    expect(givenUpText({ crashCount, lastCrash: last })).toBe(text);
  });
});
