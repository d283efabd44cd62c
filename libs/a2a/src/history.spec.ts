import { historyTail } from './task.js';
import { sampleMessage } from '../../../test/support/a2a/samples.js';

const history = ['1', '2', '3'].map((messageId) => sampleMessage({ messageId }));

describe('P-7: historyLength', () => {
  it.each([
    [undefined, ['1', '2', '3']],
    [0, []],
    [1, ['3']],
    [2, ['2', '3']],
    [3, ['1', '2', '3']],
    [2 ** 31 - 1, ['1', '2', '3']],
  ])('of %p gives the messages %j', (historyLength, expected) => {
    expect(historyTail(history, historyLength).map(({ messageId }) => messageId)).toEqual(expected);
  });
});
