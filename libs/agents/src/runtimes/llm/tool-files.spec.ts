import { TaskState } from '@baton/a2a';
import type { LlmEntry } from './llm-entry.js';
import { LlmBench, summaryOf, toolOf } from './llm-runtime.fixture.js';
import type { ToolFile } from './tools/tool-sources.js';

const { TASK_STATE_COMPLETED: COMPLETED } = TaskState;
const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';
const PDF = Buffer.from('%PDF-1.7 page').toString('base64');
const SOUND = Buffer.from('RIFF....WAVE').toString('base64');
const FILES: ToolFile[] = [
  { name: 'shot.png', mediaType: 'image/png', base64: PIXEL },
  { name: 'page.pdf', mediaType: 'application/pdf', base64: PDF },
  { name: 'word.wav', mediaType: 'audio/wav', base64: SOUND },
];

const called = { calls: [{ id: 'a', name: 'shoot', input: { city: 'Ulm' } }] };
const shoot = (files = FILES) =>
  toolOf('shoot', () => '', { execute: () => Promise.resolve({ ok: true, content: 'done', files }) });

describe('files that a tool returns', () => {
  let bench: LlmBench;
  beforeAll(async () => (bench = await LlmBench.start()));
  beforeEach(() => bench.reset());
  afterAll(() => bench.stop());

  /** The body of the request after the call of the tool. */
  async function bodyAfterCall(config: Record<string, unknown>, files?: ToolFile[]) {
    bench.tools.push(shoot(files));
    bench.provider.reply(called, { text: 'seen' });
    const { status } = summaryOf(await bench.say(config));
    expect(status?.state).toBe(COMPLETED);
    return (await bench.provider.request(2)).body;
  }

  it('stand in the result for Anthropic, what it does not take as a note', async () => {
    const body = await bodyAfterCall({ model: 'anthropic/claude-sonnet-4-5', promptCache: 'off' });
    const [result] = body.messages.at(-1).content;
    expect(result.content).toEqual([
      { type: 'text', text: expect.stringContaining('you are not shown word.wav (audio/wav, 12 bytes)') },
      { type: 'image', source: { type: 'base64', media_type: 'image/png', data: PIXEL } },
      { type: 'document', source: { type: 'base64', media_type: 'application/pdf', data: PDF } },
    ]);
    expect(result.content[0].text).toContain('artifact call-1-1-file-3');
  });

  it('stand in the result for the Responses API', async () => {
    const body = await bodyAfterCall({ model: 'openai/gpt-5-mini' });
    expect(body.input.at(-1).output).toEqual([
      { type: 'input_text', text: expect.stringContaining('not shown word.wav') },
      { type: 'input_image', image_url: `data:image/png;base64,${PIXEL}` },
      { type: 'input_file', filename: 'page.pdf', file_data: `data:application/pdf;base64,${PDF}` },
    ]);
  });

  it('stand in the result for Gemini, and sound after it', async () => {
    const body = await bodyAfterCall({ model: 'google/gemini-3-flash' });
    const parts = body.contents.at(-1).parts;
    const all = JSON.stringify(body.contents);
    expect(all).toContain(`{"inlineData":{"mimeType":"image/png","data":"${PIXEL}"}}`);
    expect(all).toContain(`{"inlineData":{"mimeType":"application/pdf","data":"${PDF}"}}`);
    expect(parts.at(-1)).toEqual({ inlineData: { mimeType: 'audio/wav', data: SOUND } });
    expect(all).not.toContain('you are not shown');
  });

  it('follow the result in a message over chat completions, where results are text', async () => {
    const body = await bodyAfterCall({ model: 'openai/gpt-4o', api: 'chat' });
    expect(body.messages.at(-2)).toMatchObject({ role: 'tool', content: expect.stringContaining('done') });
    expect(body.messages.at(-1)).toMatchObject({
      role: 'user',
      content: [
        { type: 'text', text: '[Files of the tool result call-1-1, not of the user: shot.png, page.pdf]' },
        { type: 'image_url', image_url: { url: `data:image/png;base64,${PIXEL}` } },
        { type: 'file', file: { filename: 'page.pdf' } },
      ],
    });
  });

  it.each([
    { model: 'openai-compatible/qwen', key: 'mine' },
    { model: 'openai/o3-mini' },
    { model: 'anthropic/claude-sonnet-4-5', toolFiles: 'off' },
  ])('are only named for a model that may not take them: %j', async (config) => {
    const text = JSON.stringify(await bodyAfterCall(config));
    expect(text).not.toContain(PIXEL);
    expect(text).toContain('you are not shown shot.png (image/png, 70 bytes)');
  });

  it('are shown to a model of an unknown name if its agent sets that', async () => {
    const body = await bodyAfterCall({ model: 'openai-compatible/qwen-vl', key: 'mine', toolFiles: 'on' });
    expect(JSON.stringify(body.messages.at(-1))).toContain(PIXEL);
  });

  it('have the type that their bytes show, and are not shown if these contradict it', async () => {
    const odd = [
      { name: 'a.jpg', mediaType: 'image/jpeg', base64: PIXEL },
      { name: 'b.png', mediaType: 'image/png', base64: Buffer.from('<html>').toString('base64') },
    ];
    const body = await bodyAfterCall({ model: 'openai/gpt-5-mini' }, odd);
    const [text, image, ...others] = body.input.at(-1).output;
    expect(image.image_url).toBe(`data:image/png;base64,${PIXEL}`);
    expect(text.text).toContain('not shown b.png');
    expect(others).toEqual([]);
  });

  it('are bounded in number and bytes, the newest first', async () => {
    const big = (name: string) => ({
      name,
      mediaType: 'image/png',
      base64: Buffer.concat([Buffer.from(PIXEL, 'base64'), Buffer.alloc(3_000_000)]).toString('base64'),
    });
    bench.tools.push(shoot([big('old.png')]), { ...shoot([big('new.png')]), name: 'again' });
    const again = { calls: [{ id: 'b', name: 'again', input: { city: 'Ulm' } }] };
    bench.provider.reply(called, again, { text: 'seen' });
    await bench.say({ model: 'openai/gpt-5-mini' });
    const { body } = await bench.provider.request(3);
    const [first, second] = body.input.filter(
      ({ type }: { type: string }) => type === 'function_call_output',
    );
    expect(first.output).toContain('you are not shown old.png');
    expect(second.output[1].image_url).toContain('data:image/png');
    bench.reset();
    const many = Array.from({ length: 25 }, (_, i) => ({ ...FILES[0]!, name: `${i}.png` }));
    const bodyOfMany = await bodyAfterCall({ model: 'openai/gpt-5-mini' }, many);
    expect(bodyOfMany.input.at(-1).output).toHaveLength(21);
  });

  it('are sent the same way by the next attempt, from the journal', async () => {
    bench.tools.push(shoot());
    bench.provider.reply(called, { status: 503, error: 'busy' });
    const turn = bench.turn({ model: 'anthropic/claude-sonnet-4-5', retries: 0 });
    await bench.run(turn);
    bench.tools.length = 0;
    bench.tools.push(shoot([]));
    bench.provider.reply({ text: 'seen' });
    await bench.run({ ...turn, attempt: 2 });
    const [, before, after] = bench.provider.requests;
    expect(JSON.stringify(before?.body.messages)).toContain(PIXEL);
    expect(after?.body.messages).toEqual(before?.body.messages);
  });

  it('are left out if the provider refuses one, and the task goes on', async () => {
    bench.tools.push(shoot());
    bench.provider.reply(called, { status: 400, error: 'Could not process image' }, { text: 'as a text' });
    const turn = bench.turn({ model: 'anthropic/claude-sonnet-4-5' });
    expect(summaryOf(await bench.run(turn)).status?.state).toBe(COMPLETED);
    const texts = bench.provider.requests.map(({ body }) => JSON.stringify(body));
    expect(texts.map((text) => text.includes(PIXEL))).toEqual([false, true, false]);
    const journal = await turn.journal.read();
    expect(journal.map(({ value }) => (value as LlmEntry).kind)).toContain('files-refused');
  });

  it('count as a thousand tokens each, whatever their size', async () => {
    const large = Buffer.concat([Buffer.from(PIXEL, 'base64'), Buffer.alloc(1_000_000)]).toString('base64');
    await bodyAfterCall({ model: 'openai/gpt-5-mini', maxOutputTokens: 10 }, [
      { name: 'large.png', mediaType: 'image/png', base64: large },
    ]);
    expect(bench.tokens.reserved[1]).toBeGreaterThan(1000);
    expect(bench.tokens.reserved[1]).toBeLessThan(1300);
  });
});
