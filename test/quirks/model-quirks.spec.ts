import { TaskState } from '@baton/a2a';
import { LlmBench, summaryOf, toolOf } from '../../libs/agents/src/runtimes/llm/llm-runtime.fixture.js';
import { MODEL_PEERS, MODEL_QUIRKS, type ModelPeer } from './model-quirks.js';

const STATES = { completed: TaskState.TASK_STATE_COMPLETED, failed: TaskState.TASK_STATE_FAILED };

let bench: LlmBench;
beforeAll(async () => {
  bench = await LlmBench.start();
});
afterEach(() => bench.reset());
afterAll(() => bench.stop());

/** `caller` of a row, with the names that a peer has. */
function named(text: string, peer: ModelPeer): string {
  const { model, ...settings } = MODEL_PEERS[peer];
  const [provider = '', name = ''] = model.split('/');
  const key = 'key' in settings ? settings.key : provider;
  return text.replaceAll('<provider>', provider).replaceAll('<model>', name).replaceAll('<key>', key);
}

const CASES = MODEL_QUIRKS.flatMap((quirk) => quirk.on.map((peer) => ({ ...quirk, peer })));

// The table of docs/agents/provider-behaviour.md.
it.each(CASES)(
  'When $peer $when, the task is $task',
  async ({ peer, replies, config, task, calls, caller, model, executed = [] }) => {
    const inputs: object[] = [];
    bench.tools.push(
      toolOf('weather', (input: object) => {
        inputs.push(input);
        return 'sunny';
      }),
    );
    bench.provider.reply(...(typeof replies === 'function' ? replies(peer) : replies));
    const { status, artifacts } = summaryOf(await bench.say({ ...MODEL_PEERS[peer], ...config }));
    const text = Object.entries(artifacts).findLast(([id]) => id.startsWith('reply-'))?.[1].text;
    expect({ state: status?.state, caller: status?.text ?? text }).toEqual({
      state: STATES[task],
      caller: named(caller, peer),
    });
    expect(bench.provider.requests).toHaveLength(calls);
    expect(inputs).toEqual(executed);
    if (model !== undefined) expect(JSON.stringify(bench.provider.requests.at(-1)?.body)).toContain(model);
  },
);
