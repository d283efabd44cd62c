import { TaskState } from '@baton/a2a';
import {
  FixedAgents,
  agent,
  collect,
  firstTurn,
  summary,
  turnSecrets,
} from '../../../../../test/support/agents/turns.js';
import type { IndexModel } from '../../index-models.js';
import { completed, type Turn } from '../../agent-runtime.js';
import { llmConfigSchema } from '../llm/llm-config.js';
import { indexOf } from './index-runtime.fixture.js';

describe('the index', () => {
  it("lists the caller's agents as text and as data", async () => {
    const agents = new FixedAgents([agent('echo'), agent('countdown')]);
    const outputs = await collect(indexOf(agents).run(firstTurn('?'), new AbortController().signal));
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

  it.each<[IndexModel, string]>([
    [
      { model: 'openai/gpt-5-mini' },
      'There is no key for my model: the secret "openai" is not set, so I cannot',
    ],
    [
      { model: 'gpt-5-mini' },
      'The model that was set for me, "gpt-5-mini", is not one that I know, so I cannot',
    ],
    [{ model: 'openai-compatible/llama' }, '"openai-compatible/llama", is not one that I know, so I cannot'],
  ])('lists them too where its model cannot be used: %j', async (model, why) => {
    const index = indexOf(new FixedAgents([agent('echo')]), { model });
    const outputs = summary(await collect(index.run(firstTurn('?'), new AbortController().signal)));
    expect(outputs).toMatchObject([
      { text: expect.stringContaining(why) as string },
      { state: TaskState.TASK_STATE_COMPLETED },
    ]);
  });

  it.each<[IndexModel, string | undefined]>([
    [{ model: 'openai/gpt-5-mini' }, 'sk'],
    [{ model: 'openai-compatible/llama', baseUrl: 'http://ollama:11434/v1' }, undefined],
  ])('routes with %j', async (model, key) => {
    const turns: Turn[] = [];
    const llm = {
      async *run(turn: Turn) {
        turns.push(turn);
        yield completed(turn);
      },
    };
    const index = indexOf(new FixedAgents([]), { model, llm });
    const turn = firstTurn('?', {
      agent: agent('index', 'index'),
      secrets: turnSecrets(key === undefined ? {} : { openai: key }),
    });
    await collect(index.run(turn, new AbortController().signal));
    const [{ agent: router }] = turns as [Turn];
    expect(router).toMatchObject({ id: 'index', definition: { runtime: 'llm' } });
    expect(llmConfigSchema.parse(router.definition.config)).toMatchObject({ ...model, agents: 'all' });
  });
});
