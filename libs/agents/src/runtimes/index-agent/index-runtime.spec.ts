import { TaskState } from '@baton/a2a';
import { FixedAgents, agent, collect, firstTurn, summary } from '../../testing/turns.js';
import { IndexRuntime } from './index-runtime.js';

describe('the index', () => {
  it("lists the caller's agents as text and as data", async () => {
    const agents = new FixedAgents([agent('echo'), agent('countdown')]);
    const outputs = await collect(new IndexRuntime(agents).run(firstTurn('?'), new AbortController().signal));
    expect(agents.asked).toEqual(['tenant-1']);
    expect(summary(outputs)).toEqual([
      {
        artifact: 'agents-1',
        append: false,
        lastChunk: true,
        text: expect.stringMatching(/^I am the index .*\n- echo \(echo\): Agent echo\n- countdown/) as string,
      },
      { state: TaskState.TASK_STATE_COMPLETED },
    ]);
    expect(outputs[0]).toMatchObject({
      value: {
        artifact: {
          parts: [
            {},
            {
              content: {
                $case: 'data',
                value: {
                  agents: [
                    { slug: 'echo', name: 'echo', description: 'Agent echo' },
                    { slug: 'countdown', name: 'countdown', description: 'Agent countdown' },
                  ],
                },
              },
            },
          ],
        },
      },
    });
  });
});
