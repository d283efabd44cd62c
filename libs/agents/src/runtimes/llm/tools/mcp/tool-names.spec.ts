import { namesForModel } from './tool-output.js';

describe('the names of tools that a model sees', () => {
  it('say the server and the tool', () => {
    const tools = [
      { server: 'files', tool: 'read' },
      { server: 'web', tool: 'search.all pages' },
    ];
    expect(namesForModel(tools)).toEqual(['files_read', 'web_search_all_pages']);
  });

  it('differ where two would be the same, in whichever order they come', () => {
    const tools = [
      { server: 'a', tool: 'b_c' },
      { server: 'a_b', tool: 'c' },
    ];
    const names = namesForModel(tools);
    expect(new Set(names).size).toBe(2);
    expect(namesForModel([...tools].reverse())).toEqual([...names].reverse());
  });

  it('leave the name of the tool that reads on in results to Baton', () => {
    expect(namesForModel([{ server: 'read', tool: 'result' }])[0]).toMatch(/^read_result_[0-9a-f]{6}$/);
  });

  it('are no longer than every provider takes', () => {
    const long = 'x'.repeat(128);
    const names = namesForModel([
      { server: 'a', tool: `${long}1` },
      { server: 'a', tool: `${long}2` },
    ]);
    expect(names.map((name) => name.length)).toEqual([64, 64]);
    expect(names[0]).not.toBe(names[1]);
  });
});
