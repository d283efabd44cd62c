import { snippetsFor } from './use-snippets';

it('fills in the agent and the server, and writes no token', () => {
  const snippets = snippetsFor('clerk', 'https://baton.example/base');
  expect(snippets.map(({ program }) => program)).toEqual([
    'Claude Code',
    'Codex',
    'VS Code',
    'Cursor',
    'LibreChat',
    'Goose',
    'curl',
    'SDKs of A2A',
  ]);
  for (const { program, text } of snippets) {
    expect([program, text.includes('https://baton.example/base/agents/clerk')]).toEqual([program, true]);
    expect([program, /baton_[\w-]{43}/.test(text)]).toEqual([program, false]);
  }
});

it('writes JSON that the programs can read', () => {
  const byProgram = new Map(
    snippetsFor('clerk', 'https://b.example').map(({ program, text }) => [program, text]),
  );
  const parsed = (program: string): unknown => JSON.parse(byProgram.get(program)!);
  expect(parsed('VS Code')).toMatchObject({
    servers: { clerk: { type: 'http', url: 'https://b.example/agents/clerk/mcp' } },
  });
  expect(parsed('Cursor')).toMatchObject({
    mcpServers: { clerk: { url: 'https://b.example/agents/clerk/mcp' } },
  });
});
