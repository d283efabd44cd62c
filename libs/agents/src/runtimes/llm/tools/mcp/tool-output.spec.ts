import { toolOutput } from './tool-output.js';

const PIXEL =
  'iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==';

const LIMITS = { limit: 1000, maxFileBytes: 100_000 };

describe('the result of a call', () => {
  it('is its structured content, which the model reads once', () => {
    const structuredContent = { temperature: 21 };
    const twice = { content: [{ type: 'text' as const, text: '{"temperature": 21}' }], structuredContent };
    expect(toolOutput('weather', twice, LIMITS)).toEqual({
      ok: true,
      content: structuredContent,
      text: '{"temperature": 21}',
    });
    const summary = { content: [{ type: 'text' as const, text: 'It is warm.' }], structuredContent };
    expect(toolOutput('weather', summary, LIMITS).text).toBe('It is warm.\n{"temperature":21}');
  });

  it('gives images and files to the callers, and a note to the model', () => {
    const blob = Buffer.from('a,b').toString('base64');
    const result = toolOutput(
      'draw',
      {
        content: [
          { type: 'text', text: 'Here:' },
          { type: 'image', data: PIXEL, mimeType: 'image/png' },
          { type: 'resource', resource: { uri: 'file:///out/table.csv', mimeType: 'text/csv', blob } },
          { type: 'resource', resource: { uri: 'note://1', text: 'remember' } },
          { type: 'resource_link', uri: 'https://x.example/doc', name: 'doc' },
        ],
      },
      LIMITS,
    );
    expect(result.files).toEqual([
      { name: 'draw-1.png', mediaType: 'image/png', base64: PIXEL },
      { name: 'table.csv', mediaType: 'text/csv', base64: blob },
    ]);
    expect(result.text).toBe(
      [
        'Here:',
        '[file draw-1.png (image/png, 70 bytes): the user has been given it]',
        '[file table.csv (text/csv, 3 bytes): the user has been given it]',
        'a,b',
        '[resource note://1]',
        'remember',
        '[resource doc: https://x.example/doc]',
      ].join('\n'),
    );
  });

  it('is kept whole beyond the limit, for the model to read on', () => {
    const { text, content, limit } = toolOutput(
      'long',
      { content: [{ type: 'text', text: 'x'.repeat(5000) }], structuredContent: { all: 'y'.repeat(5000) } },
      LIMITS,
    );
    expect(text).toHaveLength(5000 + 1 + 5000 + '{"all":""}'.length);
    expect(content).toMatch(/^x{1000}\n\[cut off: these are the first 1000 of \d+ characters\]$/);
    expect(limit).toBe(1000);
  });

  it('is cut off after a million characters, and not in the middle of one', () => {
    const long = `${'x'.repeat(999_999)}😀 and more`;
    const { text } = toolOutput('long', { content: [{ type: 'text', text: long }] }, LIMITS);
    expect(text).toMatch(/^x{999999}\n\[cut off: these are the first 999999 of \d+ characters\]$/);
  });

  it('leaves out files that no event can hold', () => {
    const data = Buffer.alloc(100_001).toString('base64');
    const result = toolOutput('draw', { content: [{ type: 'image', data, mimeType: 'image/png' }] }, LIMITS);
    expect(result.files).toBeUndefined();
    expect(result.text).toContain('left out: too large');
  });
});
