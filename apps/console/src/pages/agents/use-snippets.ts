/** How an agent is used from one program. */
export interface UseSnippet {
  program: string;
  /** Where the text goes. */
  where: string;
  text: string;
}

const json = (value: unknown): string => JSON.stringify(value, null, 2);

/**
 * The settings for each program. None contains a token: the programs read it from the environment variable BATON_TOKEN, or ask for
 * it.
 * @param server URL of Baton, without a slash at its end
 */
export function snippetsFor(slug: string, server: string): UseSnippet[] {
  const url = `${server}/agents/${slug}/mcp`;
  const params = { message: { messageId: 'hello-1', role: 'ROLE_USER', parts: [{ text: 'Hello' }] } };
  const body = JSON.stringify({ jsonrpc: '2.0', id: 1, method: 'SendMessage', params });
  return [
    {
      program: 'Claude Code',
      where: 'In a shell',
      text: `claude mcp add --transport http ${slug} ${url} --header "Authorization: Bearer $BATON_TOKEN"`,
    },
    {
      program: 'Codex',
      where: 'In ~/.codex/config.toml',
      text: `[mcp_servers.${slug}]\nurl = "${url}"\nbearer_token_env_var = "BATON_TOKEN"\ntool_timeout_sec = 60`,
    },
    {
      program: 'VS Code',
      where: 'In .vscode/mcp.json',
      text: json({
        inputs: [{ type: 'promptString', id: 'baton-token', description: 'Token of Baton', password: true }],
        servers: {
          [slug]: { type: 'http', url, headers: { Authorization: 'Bearer ${input:baton-token}' } },
        },
      }),
    },
    {
      program: 'Cursor',
      where: 'In .cursor/mcp.json',
      text: json({
        mcpServers: { [slug]: { url, headers: { Authorization: 'Bearer ${env:BATON_TOKEN}' } } },
      }),
    },
    {
      program: 'LibreChat',
      where: 'In librechat.yaml',
      text: `mcpServers:\n  ${slug}:\n    type: streamable-http\n    url: ${url}\n    headers:\n      Authorization: 'Bearer \${BATON_TOKEN}'\n    timeout: 60000`,
    },
    {
      program: 'Goose',
      where: 'In ~/.config/goose/config.yaml; put the token in',
      text: `extensions:\n  ${slug}:\n    enabled: true\n    type: streamable_http\n    name: ${slug}\n    uri: ${url}\n    headers:\n      Authorization: Bearer <token>\n    timeout: 300`,
    },
    {
      program: 'curl',
      where: 'In a shell (A2A)',
      text: `curl ${server}/agents/${slug} \\\n  -H "Authorization: Bearer $BATON_TOKEN" \\\n  -H 'Content-Type: application/json' -H 'A2A-Version: 1.0' \\\n  -d '${body}'`,
    },
    {
      program: 'SDKs of A2A',
      where: 'Base URL of the agent, with the token as a header of each request',
      text: `${server}/agents/${slug}/`,
    },
  ];
}
