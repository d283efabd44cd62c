import { pageOfPushes } from './dead-push-json.js';

const TASK = '01980000-0000-7000-8000-000000000000';
const cursor = (at: string) => Buffer.from(`${at} ${TASK} a b`).toString('base64url');
const pageAfter = (at: string) =>
  pageOfPushes(10, cursor(at), (page) => Promise.reject(new Error(JSON.stringify(page.after))));

describe('the cursor of a list of dead pushes', () => {
  it('is a position', async () => {
    const at = '2026-12-31T08:00:00.000Z';
    const position = { failingSince: at, taskId: TASK, configId: 'a b' };
    await expect(pageAfter(at)).rejects.toThrow(JSON.stringify(position));
  });

  it.each(['-271821-04-20T00:00:00.000Z', '2026-12-31', 'soon'])('has a time, not %s', async (at) => {
    await expect(pageAfter(at)).rejects.toThrow('cursor: must be the next_cursor');
  });
});
