import fc from 'fast-check';
import { LlmBench, summaryOf, toolOf } from '../../libs/agents/src/runtimes/llm/llm-runtime.fixture.js';
import { TaskState } from '../../libs/a2a/src/index.js';
import type { Finding, Outcome } from './finding.js';
import { SAID, type StreamCase, streamCase } from './stream-cases.js';

/** Short, so that answers without an end do not hold up the run. */
const TIMES = { timeout: '5s', firstToken: '800ms', stall: '800ms' };
/** What must not be in the reason of a failure. */
const INSIDE = /TypeError|Cannot read prop|is not a function|node_modules|\n\s+at /;

/**
 * Streams of models, cut, doubled, reordered and mixed: every task ends with a reason, and no tool is called that the
 * model has not called, nor more often, nor with another input.
 */
export async function fuzzStreams(
  cases: number,
  seed: number,
  ended: (state: string) => void,
): Promise<Outcome> {
  const bench = await LlmBench.start();
  const findings: Finding[] = [];
  try {
    for (const [number, one] of fc.sample(streamCase, { numRuns: cases, seed }).entries()) {
      const problem = await tryStream(bench, one, ended);
      if (problem !== undefined)
        findings.push({ part: 'stream', number, problem, input: JSON.stringify(one) });
    }
  } finally {
    await bench.stop();
  }
  return { findings, answered: cases };
}

async function tryStream(
  bench: LlmBench,
  { config, text, mayBeEmpty, isOpen }: StreamCase,
  ended: (state: string) => void,
): Promise<string | undefined> {
  bench.reset();
  const inputs: string[] = [];
  const note = (input: object): string => {
    inputs.push(JSON.stringify(input));
    return 'sunny';
  };
  // It takes any input, so that nothing else stops a wrong one.
  bench.tools.push(toolOf('weather', note, { inputSchema: { type: 'object' } }));
  bench.provider.reply({ wire: () => [text], ...(isOpen && { open: true }) });
  bench.provider.answer(() => ({ text: 'Done.' }));
  const outputs = await bench.say({ ...TIMES, retries: 0, steps: 3, ...config });
  const { status } = summaryOf(outputs);
  ended(status ? TaskState[status.state] : 'no end');
  const isFailed = status?.state === TaskState.TASK_STATE_FAILED;
  if (!isFailed && status?.state !== TaskState.TASK_STATE_COMPLETED) return 'the task has not ended';
  if (isFailed && !status.text) return 'the task has failed without a reason';
  if (INSIDE.test(status.text ?? '')) return `the reason shows the inside: ${status.text}`;
  const other = inputs.find((input) => !SAID.includes(input) && !(mayBeEmpty && input === '{}'));
  if (other !== undefined) return `a tool was called with ${other}, which the model has not said`;
  const said = text.split('"weather"').length - 1;
  return inputs.length > said
    ? `a tool was called ${inputs.length} times, and said ${said} times`
    : undefined;
}
