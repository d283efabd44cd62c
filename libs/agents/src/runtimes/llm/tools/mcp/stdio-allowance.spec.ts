import { whyNotAllowed } from './mcp-config.js';

const line = (words: string, env: Record<string, string> = {}) => {
  const [command = '', ...args] = words.split(' ');
  return { command, args, env };
};

describe('commands that an operator allows', () => {
  const allowances = [
    ['node', '/opt/files.mjs'],
    ['TOKEN=', 'LEVEL=', 'npx', '-y', 'notes'],
  ];

  it.each(['node /opt/files.mjs', 'node /opt/files.mjs --root /data', 'npx -y notes'])('%s', (words) => {
    expect(whyNotAllowed(line(words), allowances)).toBeUndefined();
  });

  it.each(['node', 'node -e 1', 'node /opt/files.mjs2', 'npx -y other', 'TOKEN= npx -y notes', 'sh'])(
    'are not %s',
    (words) => {
      expect(whyNotAllowed(line(words), allowances)).toMatch(/does not allow the command/);
    },
  );

  it('take only the variables that the operator has named', () => {
    expect(whyNotAllowed(line('npx -y notes', { TOKEN: 'x' }), allowances)).toBeUndefined();
    expect(whyNotAllowed(line('npx -y notes', { NODE_OPTIONS: 'x' }), allowances)).toMatch(/NODE_OPTIONS/);
    expect(whyNotAllowed(line('node /opt/files.mjs', { TOKEN: 'x' }), allowances)).toMatch(/TOKEN/);
  });

  it('are none by default', () => {
    expect(whyNotAllowed(line('node'), [])).toBeDefined();
  });
});
