import { YamlSource } from './yaml-source.js';

describe('a YAML source', () => {
  const text = `# an agent
name: Support
config:
  model: openai/x
  agents:
    - first
    - slug: second
      as: x
  tools: {mcp: [{name: a}, {name: b,
    url: x}]}
`;

  it.each([
    ['name', 2],
    ['config', 3],
    ['config.model', 4],
    ['config.agents[0]', 6],
    ['config.agents[1]', 7],
    ['config.agents[1].as', 8],
    ['config.tools.mcp[1].url', 10],
    // What is missing stands nowhere: the field around it is shown.
    ['config.agents[5]', 5],
    ['config.tools.mcp[0].url', 9],
    ['description', 2],
  ])('knows the line of %s', (path, line) => expect(new YamlSource(text).lineOf(path)).toBe(line));

  it('has the line of a field by its path', () => {
    expect(new YamlSource(text).lineOf(['config', 'agents', '1', 'as'])).toBe(8);
  });

  it('has the lines of JSON, and of a file without fields', () => {
    expect(new YamlSource('{\n  "name": "x",\n  "config": {"a": 1}\n}').lineOf('config.a')).toBe(3);
    for (const empty of ['', 'only text', '- a\n- b']) expect(new YamlSource(empty).lineOf('name')).toBe(1);
  });

  it('names every fault of YAML with its line', () => {
    const { faults } = new YamlSource('a: "open\nb: [1, 2\nc: }\n');
    expect(faults.length).toBeGreaterThan(0);
    for (const { line, text: fault } of faults) {
      expect(line).toBeGreaterThan(0);
      expect(fault).not.toContain('\n');
    }
    expect(new YamlSource('a: 1\na: 2\nb: 3\nb: 4\n').faults.map(({ line }) => line)).toEqual([2, 4]);
    expect(new YamlSource('a: 1\n').faults).toEqual([]);
    expect(new YamlSource('a: "open').value).toBeUndefined();
    expect(new YamlSource('a: [1, x]\n').value).toEqual({ a: [1, 'x'] });
  });
});
